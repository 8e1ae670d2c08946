// SPDX-License-Identifier: Apache-2.0
// One rank of a group: takes calls, chooses and binds their plans, drives the executor, and turns
// whatever goes wrong into one cause that all ranks report.
#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bootstrap/membership.h"
#include "communicator/announcement.h"
#include "communicator/call.h"
#include "communicator/diagnosis.h"
#include "communicator/fingerprint.h"
#include "communicator/last_call.h"
#include "communicator/pairwise.h"
#include "communicator/patience.h"
#include "communicator/placement_ahead.h"
#include "communicator/placement_classes.h"
#include "communicator/placement_trials.h"
#include "communicator/plans.h"
#include "communicator/prepared.h"
#include "communicator/process_forks.h"
#include "communicator/recent.h"
#include "communicator/refining.h"
#include "engine/executor.h"
#include "engine/ladder.h"
#include "transport/failure.h"
#include "transport/usable_cores.h"

namespace coll {

// What is known of the cores where ranks are some of a larger group.
struct Company {
  int most_spins = std::numeric_limits<int>::max();  // else what their own cores suggest
  std::optional<bool> crowded;  // as of a Wish; else by their own cores, all having entered
  bool in_turns = false;        // as of a Wish, where `crowded` is given
};

class Communicator {
 public:
  // `shares_memory`: the ranks are threads of one process, so may read each other's buffers.
  Communicator(Membership&& membership, int rank, double timeout, bool interruptible,
               bool shares_memory, const Company& company = {});
  ~Communicator();

  int rank() const noexcept { return rank_; }
  int ranks() const noexcept { return ranks_; }
  // What the ranks have between them where they are more; 0: each can have a core of its own.
  int shared_cores() const noexcept { return coll::shared_cores(segment_); }
  std::uint64_t calls() const noexcept { return clock_.calls; }

  // ok, or in_progress where the communicator is interruptible: then resume(). Throws Error.
  Status run(const Call& call);
  Status run(const PairCall& call);
  Status resume();
  // A call that is made again and again. Local: nothing reaches the other ranks. The communicator
  // keeps it until it is to forget it.
  Persistent& prepare(const Call& call);
  void forget(Persistent& persistent);
  // Begins it and returns at once; then finish() until it is ok. run() does both.
  void start(Persistent& persistent);
  Status finish(Persistent& persistent);
  Status run(Persistent& persistent);
  // Message calls that do not block.
  coll_request post(const PairCall& call);
  void test(coll_request request, std::int32_t& done, coll_message* received);
  bool probe(const PairCall& call);
  // Makes a schedule from outside the table an algorithm of this communicator: its number.
  int add_schedule(Schedule&& schedule, std::string name);
  // While a call's plan is made (plans.h).
  void look_by(std::function<void()> look) { plans_.look_by(std::move(look)); }
  // From the next call on, and not of persistent calls that are there. All ranks must take the same
  // at the same place in their calls.
  void tune(std::vector<TunedLine> lines);
  // Of rank 0, on others it does nothing: refines the rules by the times of the program's own
  // calls, at a cost of about `budget` seconds; what it finds, all ranks take in the same call.
  // Without `machine` the rivals are those that would be fast on a usual one.
  void refine(double budget, const std::optional<MachineCosts>& machine);
  // Of rank 0: choices that all ranks take in the same call, soon. They go behind those of tune().
  // `cores`: only if the ranks have so many between them; 0: however many.
  void announce(std::vector<TunedLine> lines, int cores);
  // What a call of so many bytes would run; Error as of choose().
  Choices choices(Kind kind, std::size_t bytes, Wish wish) const {
    wish.crowded = crowded_;
    wish.in_turns = in_turns_;
    return choose(kind, ranks_, bytes, wish, tuned_);
  }
  // Ends this group with a cause that all its ranks report, unless it has ended before.
  [[noreturn]] void fail(const Cause& cause);
  // A communicator like this one, for this rank's place in a group of some of its ranks.
  Communicator branch(Membership&& place, int rank) const;
  const Membership& membership() const noexcept { return membership_; }
  // The same for all ranks of a group in this process, and for no other group there is.
  const void* group() const noexcept { return &segment_.header(); }
  // Whether all its ranks are threads of this process.
  bool within_process() const noexcept { return shares_memory_ || ranks_ == 1; }
  // For arrays within reach of all ranks; null of threads, which reach all memory. Throws Error
  // (unsupported) where the job has none.
  std::shared_ptr<SymmetricHeap> heap() const;
  // What the last collective was that is done; none before the first, and after a failure.
  std::optional<LastCall> last();
  Watch& watch() noexcept { return watch_; }
  // Whether all ranks can reach this memory.
  bool reaches(const void* data, std::size_t bytes) const noexcept;
  // Its rank in the group that all began in.
  int world_rank() const noexcept;
  double timeout() const noexcept { return timeout_; }
  bool interruptible() const noexcept { return interruptible_; }
  // Ends it on all ranks, unless it has ended before.
  void revoke();
  // First cause wins; wakes nobody, since no sleep is longer than 50 ms.
  void abort(std::string_view reason);
  // Throws Error that says why this group has ended, where it has.
  void check_failed() {
    if (failed(segment_)) [[unlikely]]
      report_failure();
  }
  bool has_failed() const noexcept { return failed(segment_); }
  // Also where a peer has died, whatever it has finished.
  void check_alive();
  // What is found now may have been invisible to one-way calls.
  void close();

 private:
  class Guard;  // guard.h

  void resolve(const Call& call, Prepared& out);
  PreparedPlan& plan_of(const Call& call, const Choice& choice);
  PreparedPlan& read_plan_of(const Call& call, const Choice& choice);
  void bind(const Call& call, Prepared& prepared, std::vector<std::byte>& scratch);
  void keep(const Call& call, Kept& kept);
  void share(const Call& call, Prepared& prepared);
  Prepared& ready(const Call& call);
  int most_lag() const noexcept { return static_cast<int>(segment_.shape().depth) - 1; }
  std::uint64_t buffer_name(const void* data, std::size_t bytes) const noexcept;
  void arrive(const Call& call) noexcept {
    if (watch_.wanted()) [[unlikely]]
      arrive_watched(call);
  }
  void arrive_watched(const Call& call) noexcept;
  BufferNames names_of(const Prepared& prepared) const noexcept;
  void begin(Prepared& prepared);
  void say_placements();
  bool placed_far(Prepared& prepared) noexcept;
  const Choice& ran() const noexcept;
  void end_watched() noexcept;
  void look_at_cores();
  void choose_by(const std::vector<TunedLine>& announced);
  void take_news();
  void renew(Persistent& persistent);
  void observe_begin(const Prepared& prepared) noexcept;
  void observe_end();
  // The call in progress is done.
  void end() {
    active_ = false;
    now_->accumulation.end();
    if (times_.entered()) [[unlikely]]
      times_.leave(clock_.calls);
    if (watch_.active()) [[unlikely]]
      end_watched();
    if (attentive_) [[unlikely]]
      observe_end();
  }
  Status drive() {
    const Progress progress = executor_.advance(policy_.spins);
    if (progress != Progress::done) return drive_on(progress);
    end();
    return Status::ok;
  }
  Status drive_on(Progress progress);
  Cause unread_here() const;
  [[noreturn]] void fail_of(Progress progress);
  Status wait_slowly();
  void enter() {
    check_failed();
    if (active_ || pairwise_.active()) [[unlikely]]
      refuse_second_call();
    if (announced_.news() || attentive_) [[unlikely]]
      take_news();
  }
  [[noreturn]] static void refuse_second_call();
  void enter(const PairCall& call);
  Status drive_pairwise();
  Status wait_for_mail(bool moved);
  bool serve_mail();
  bool drain_mail();
  void look_while_polling(const WaitNote& note, bool left);
  OwnCall own_call() const;
  [[noreturn]] void report_failure();
  void check_fork() const {
    if (process_forks() != forks_) [[unlikely]]
      refuse_fork();
  }
  [[noreturn]] void refuse_fork() const;

  Membership membership_;
  Segment segment_;
  int rank_, ranks_;
  double timeout_;
  int most_spins_;
  bool crowded_, in_turns_, interruptible_, shares_memory_;
  unsigned forks_;
  int pid_;  // of the process that made it
  std::atomic<bool> busy_{false};
  bool touched_ = false;  // its slots have all their pages
  bool active_ = false;   // a call was begun and is not finished
  bool knows_failure_ = false;
  Patience patience_, polls_;
  Plans plans_;
  std::shared_ptr<SymmetricHeap> heap_;  // null of threads,
  std::shared_ptr<PeerMemory> peers_;    // too
  Executor executor_;
  ReadTurns read_turns_;
  GroupClock clock_;
  Link next_;  // of one more call like the last
  WaitPolicy policy_;
  Watch watch_;
  Tuned tuned_;
  std::vector<TunedLine> base_;  // what tune() has given, and wishes
  std::uint64_t tunes_ = 0;      // times that it has
  Announcement announced_;
  std::unique_ptr<Refining> refining_;  // of rank 0, as are these:
  std::vector<TunedLine> given_;        // what it is to announce besides what refining finds
  int given_cores_ = 0;                 // if the ranks have so many
  bool given_news_ = false;             // that was not announced yet
  CallTimes times_;
  PlacementAhead placements_;
  PlacementClasses classes_;
  std::unique_ptr<PlacementTrials> trials_;  // of rank 0, where nobody has said where the cores are
  bool timed_ = false;                       // all ranks tell the times of their calls
  bool attentive_ = false;                   // this one has an eye on every call
  Recent recent_;                            // small calls
  Prepared large_;                           // the last other one that was not persistent
  Prepared* last_ = &large_;                 // the last call that was not persistent
  Prepared* now_ = &large_;                  // the call in progress, or the last one
  std::vector<std::unique_ptr<Persistent>> persistent_;
  std::unique_ptr<Persistent> forgotten_;  // which the last call was: `now_` still tells of it
  std::vector<std::byte> scratch_;
  Pairwise pairwise_;
  std::uint64_t messages_ = 0;  // message calls begun
};

}  // namespace coll

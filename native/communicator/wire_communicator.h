// SPDX-License-Identifier: Apache-2.0
// One rank of a group over several machines: takes calls, connects to the peers of their plans,
// drives the streams, and turns whatever goes wrong into one cause that all ranks report.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "communicator/call.h"
#include "communicator/diagnosis.h"
#include "communicator/last_call.h"
#include "communicator/pair_calls.h"
#include "communicator/patience.h"
#include "communicator/wire_links.h"
#include "communicator/wire_mailbox.h"
#include "communicator/wire_plans.h"
#include "communicator/wire_ready.h"

namespace coll {

// Who keeps a call from ending, and for whom this rank itself waits; -1: nobody.
struct Blame {
  int culprit = -1, awaited = -1;
};

class WireCommunicator {
 public:
  WireCommunicator(WirePlace&& place, double timeout, bool interruptible);
  ~WireCommunicator();

  int rank() const noexcept { return rank_; }
  int ranks() const noexcept { return ranks_; }
  std::uint64_t calls() const noexcept { return calls_; }

  // ok, or in_progress where the communicator is interruptible: then resume(). Throws Error.
  Status run(const Call& call);
  Status run(const PairCall& call);
  Status resume();
  // A call that is made again and again. Local: nothing reaches the other ranks. The communicator
  // keeps it until it is to forget it.
  WirePersistent& prepare(const Call& call);
  void forget(WirePersistent& persistent);
  // Begins it and returns at once; then finish() until it is ok. run() does both.
  void start(WirePersistent& persistent);
  Status finish(WirePersistent& persistent);
  Status run(WirePersistent& persistent);
  // Message calls that do not block.
  coll_request post(const PairCall& call);
  void test(coll_request request, std::int32_t& done, coll_message* received);
  bool probe(const PairCall& call);
  int add_schedule(Schedule&& schedule, std::string name);
  // While a call's plan is made (wire_plans.h).
  void look_by(std::function<void()> look) { plans_.look_by(std::move(look)); }
  // From the next call on, and not of persistent calls that are there. All ranks must take the same
  // at the same place in their calls.
  void tune(std::vector<TunedLine> lines);
  // What a call of so many bytes would run; Error as of choose_for_wire().
  WireChoice choice(Kind kind, std::size_t bytes, const Wish& wish) const {
    return choose_for_wire(kind, ranks_, bytes, wish, plans_.hosts_are_shared(), tuned_);
  }
  // What the last collective was that is done; none before the first, and after a failure.
  std::optional<LastCall> last();
  Watch& watch() noexcept { return watch_; }
  // Ends this group with a cause that all its ranks report, unless it has ended before.
  [[noreturn]] void fail(const Cause& cause);
  // A communicator like this one, at a place of its own.
  std::unique_ptr<WireCommunicator> branch(WirePlace&& place) const;
  const WirePlace& place() const noexcept { return links_.place(); }
  double timeout() const noexcept { return timeout_; }
  bool interruptible() const noexcept { return interruptible_; }
  // Ends it on all ranks, as abort() does, so that those that live may shrink.
  void revoke();
  // A peer, or any where it is -1, that is lost while no call is under way. From any thread.
  std::optional<Cause> lost_meanwhile(int peer);
  // Of a communicator that has failed: reads what peers have said since; and whether one has closed
  // it, or ended, as far as this rank can tell.
  void hear_partings() noexcept;
  bool has_parted(int peer) const noexcept { return links_.has_parted(peer); }
  // The door for what survivors tell each other, once. Throws Error(invalid_argument).
  TcpListener survivors_door();
  // First cause wins; the peers that this rank is connected to learn it at once, and tell theirs.
  // From any thread: where another one is in a call, that one does it, within 50 ms.
  void abort(std::string_view reason);
  // Throws Error that says why this group has ended, where it has.
  void check_failed() const;
  // Tells the peers that this rank leaves. Local.
  void close();

 private:
  class Entered;  // wire_guard.h
  using Since = std::optional<std::chrono::steady_clock::time_point>;

  void check_fork() const;
  void enter();
  void resolve(const Call& call, WireReady& out);
  void bind(const Call& call, WireReady& ready, std::vector<std::byte>& scratch);
  void begin(WireReady& ready);
  bool go();
  bool hears_a_stranger() noexcept;
  void connected();
  Status drive();
  bool advance();
  void wait();
  void look();
  void look_at_peers();
  void look_at_calls(int peer);
  void look_at_strangers();
  void look_for_lost();
  void look_for_gone();
  std::optional<Cause> seen_lost(int peer);
  void look_for_first(const Error& error);
  static bool settled_ago(Since& since, double seconds);
  void say_calls(int peer);
  void take_leave();
  [[noreturn]] void fail_here(const Error& error);
  [[noreturn]] void adopt(const Failure& failure, int from);
  void tell(const Failure& failure, int all_but) noexcept;
  [[noreturn]] void report() const;
  void remember(const Failure& failure, int from) noexcept;
  Failure failure_of(const Cause& cause) const noexcept;
  void ask(const std::string& wish);
  void obey();
  std::optional<Cause> wish();
  void obey_if_idle() noexcept;
  Cause lost_before(int peer, const std::string& how) const;
  std::string whereabouts(int peer) const;
  std::string absent_beside(int named) const;
  Cause late() const;
  // Of message calls (wire_messages.cc).
  void enter(const PairCall& call);
  Status drive_messages();
  void serve_mail();
  void check_mail();
  bool can_tell();
  [[noreturn]] void give_up_messages();
  void say_messages();
  int blamed_for(const WaitNote& note) const;
  void look_while_polling(const WaitNote& note, bool left);
  void look_after(const std::vector<WaitNote>& notes, bool left);
  void look_for_last(const WaitNote& note, bool left);
  bool has_left(int peer) const;
  std::optional<Cause> lost(const WaitNote& note);
  Cause lost(const WaitNote& note, const std::string& how, bool left) const;
  static Cause lost(const WaitNote& note, int peer, const Cause& cause);
  Cause late_message() const;
  std::vector<int> awaited() const;
  int waits_for() const;
  Blame blamed() const;
  void say_goes_on();
  const CallNote* own_note(std::uint64_t number) const;

  int rank_, ranks_;
  double timeout_;
  bool interruptible_;
  unsigned forks_;
  // Which thread is inside: one with a call, or one that does what another has asked for.
  enum class Inside : std::uint8_t { nobody, call, obeying };
  std::atomic<Inside> inside_{Inside::nobody};
  WirePlans plans_;
  WireLinks links_;
  PairCalls<WireMailbox> mail_;
  Tuned tuned_;
  WireReady last_;           // the last call that was not persistent
  WireReady* now_ = &last_;  // the call in progress, or the last one
  std::vector<std::unique_ptr<WirePersistent>> persistent_;
  std::vector<std::byte> scratch_;
  std::uint64_t calls_ = 0, fingerprint_ = 0;
  // Of the last calls, for peers that ask what this rank called.
  std::array<std::optional<CallNote>, WireControl::kNotes> notes_;
  bool active_ = false, began_ = false;
  bool shrunk_ = false;
  bool doubts_ = false;      // whether this call will end
  bool listened_ = false;    // whether this call has read from any stream
  unsigned unheard_ = 0;     // calls since one has
  bool said_waits_ = false;  // peers were told that this rank waits
  unsigned turns_ = 0;
  Watch watch_;
  std::vector<pollfd> watched_;
  Patience patience_, polls_;
  // Since when nothing has moved, and since when what is seen of a peer may be explained by news.
  Since still_since_, strange_since_;
  std::map<int, Since> lost_since_;
  // Of messages, whose waits may be many short ones: since when nothing has moved either.
  struct Loss {
    Since since;
    std::uint64_t moved = 0;
  };
  std::map<int, Loss> mail_lost_;
  std::optional<Failure> failure_;
  // What a thread that may not be the one in a call asks for.
  std::atomic<bool> asked_{false};
  std::mutex asking_;
  std::string wish_;
};

}  // namespace coll

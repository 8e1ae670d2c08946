// SPDX-License-Identifier: Apache-2.0
// One rank of a group over several machines: takes calls, connects to the peers of their plans,
// drives the streams, and turns whatever goes wrong into one cause that all ranks report.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "communicator/accumulation.h"
#include "communicator/call.h"
#include "communicator/diagnosis.h"
#include "communicator/patience.h"
#include "communicator/wire_links.h"
#include "communicator/wire_plans.h"

namespace coll {

class WireCommunicator {
 public:
  WireCommunicator(WirePlace&& place, double timeout, bool interruptible);
  ~WireCommunicator();

  int rank() const noexcept { return rank_; }
  int ranks() const noexcept { return ranks_; }
  std::uint64_t calls() const noexcept { return calls_; }

  // ok, or in_progress where the communicator is interruptible: then resume(). Throws Error.
  Status run(const Call& call);
  Status resume();
  int add_schedule(Schedule&& schedule, std::string name);
  // First cause wins; the peers that this rank is connected to learn it at once, and tell theirs.
  // From any thread: where another one is in a call, that one does it, within 50 ms.
  void abort(std::string_view reason);
  // Tells the peers that this rank leaves. Local.
  void close();

 private:
  class Entered;
  using Since = std::optional<std::chrono::steady_clock::time_point>;
  // A call whose plan is chosen and bound.
  struct Ready {
    Call call;
    WireChoice choice;
    CallNote note;
    std::uint64_t hash = 0, user_op = 0;
    PreparedWirePlan* plan = nullptr;
  };

  void check_fork() const;
  void check_failed() const;
  void resolve(const Call& call);
  bool serves(const Call& call) const noexcept;
  void bind(const Call& call);
  void begin();
  Status drive();
  bool advance();
  void wait();
  void look();
  void look_at_peers();
  void look_at_calls(int peer);
  void look_at_strangers();
  void look_for_lost();
  void look_for_gone();
  static bool settled_ago(Since& since, double seconds);
  void say_calls(int peer);
  [[noreturn]] void fail(const Cause& cause);
  [[noreturn]] void fail_here(const Error& error);
  [[noreturn]] void adopt(const Failure& failure, int from);
  void tell(const Failure& failure, int all_but) noexcept;
  [[noreturn]] void report() const;
  void remember(const Failure& failure, int from) noexcept;
  Failure failure_of(const Cause& cause) const noexcept;
  void obey();
  std::optional<Cause> wish();
  void obey_if_idle() noexcept;
  Cause late() const;
  int waits_for() const;
  int blamed() const;
  const CallNote* own_note(std::uint64_t number) const;

  int rank_, ranks_;
  double timeout_;
  bool interruptible_;
  unsigned forks_;
  std::atomic<bool> busy_{false};
  WirePlans plans_;
  WireLinks links_;
  Accumulation accumulation_;
  std::vector<std::byte> scratch_;
  Ready now_;
  std::uint64_t calls_ = 0, fingerprint_ = 0;
  // Of the last calls, for peers that ask what this rank called.
  std::array<std::optional<CallNote>, WireControl::kNotes> notes_;
  bool active_ = false, began_ = false;
  bool doubts_ = false;  // whether this call will end
  unsigned turns_ = 0;
  Patience patience_;
  // Since when nothing has moved, and since when what is seen of a peer may be explained by news.
  Since still_since_, strange_since_;
  std::map<int, Since> lost_since_;
  std::optional<Failure> failure_;
  // What a thread that may not be the one in a call asks for.
  std::atomic<bool> asked_{false};
  std::mutex asking_;
  std::string wish_;
};

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Tells the time of one communicator's calls, where somebody wants to know it: how long the last
// one took and waited, and, while it is recorded, when each step and wait began and ended. Else no
// clock is read: two readings are not little beside a small call.
#pragma once

#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "engine/recording.h"

namespace coll {

class Watch {
 public:
  // Of which calls the times are told. Numeric values are those of the C interface.
  enum class Of : std::int32_t { none, large, all };

  // ---- from any thread: of calls that begin from now on

  void tell_times(Of which);
  // Throws bad_alloc, and Error(invalid_argument) while calls are recorded.
  void record(std::size_t most_events);
  void stop_recording();
  // The last one, null before.
  std::shared_ptr<const Recording> recording() const;

  // ---- of the thread that is in a call

  // Whether times are told, or what is told has changed: then arrive().
  bool wanted() const noexcept { return wanted_.load(std::memory_order_relaxed); }
  // A call begins, if there is nothing wrong with it.
  void arrive(bool large) noexcept {
    if (changed_.load(std::memory_order_relaxed)) [[unlikely]]
      take_up();
    on_ = into_ != nullptr || times_ == Of::all || (large && times_ == Of::large);
    if (on_) arrived_ = latest_ = now();
  }
  bool on() const noexcept { return on_; }
  bool records() const noexcept { return into_ != nullptr; }
  // It has begun; its event but for the times, and for the number of a message.
  void begin(const Event& operation) noexcept;
  bool active() const noexcept { return active_; }
  // Of a call that is over already.
  void tell(const Event& operation) noexcept {
    begin(operation);
    end();
  }
  // What it ran, where that was settled later.
  void runs(int algorithm, int mode) noexcept;
  void end(bool failed = false) noexcept;

  // Something was not there when it was first looked for. Does nothing within a wait for the same
  // rank.
  void wait_begins(int peer) noexcept;
  void wait_ends() noexcept;
  bool waits() const noexcept { return wait_since_ != 0; }

  // A step begins where the one before ended. Does nothing within a step.
  void step_begins() noexcept;
  void step_ends(Event step) noexcept;
  // The same, of one that is worth telling only where it has waited.
  void step_ends_if_it_waited(Event step) noexcept;
  // A step of a lane of its own.
  void add(const Event& step) noexcept;

  static std::int64_t now() noexcept {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
  }

  // Nanoseconds of the last operation that ended well.
  struct Times {
    std::uint64_t call = 0;  // its number; 0: none
    std::int64_t all = 0, waiting = 0;
  };
  const Times& last() const noexcept { return last_; }

 private:
  void take_up() noexcept;

  mutable std::mutex changing_;
  Of times_asked_ = Of::none;
  std::shared_ptr<Recording> asked_;  // null: none
  std::shared_ptr<Recording> kept_;   // the last one
  std::atomic<bool> wanted_{false}, changed_{false};

  Of times_ = Of::none;
  std::shared_ptr<Recording> into_;
  bool on_ = false, active_ = false;
  Event operation_;
  Event* told_ = nullptr;    // the operation, as it is recorded; null: there was no room
  std::int64_t latest_ = 0;  // the time that was read last
  std::int64_t arrived_ = 0, waiting_ = 0;
  std::int64_t wait_since_ = 0, step_since_ = 0;  // 0: in none
  std::int64_t waited_before_ = 0;                // the step
  std::uint64_t messages_ = 0;
  int waits_for_ = -1;
  Times last_;
};

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// How long calls take from when the last rank has entered to when the last one has left, whoever
// came late: each rank says when it did, on a clock that all processes of a machine have.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "transport/segment.h"

namespace coll {

class CallTimes {
 public:
  CallTimes(const Segment& segment, int rank) : segment_(segment), rank_(rank) {}

  // This rank enters a call.
  void enter() noexcept { entered_ = now(); }
  bool entered() const noexcept { return entered_ != 0; }
  // It does not say anything of that call.
  void forget() noexcept { entered_ = 0; }
  // It leaves it, once it has entered: call number `call`.
  void leave(std::uint64_t call) noexcept {
    left_ = {call, entered_, now()};
    entered_ = 0;
  }
  // It tells the others of the call that it has left; once the next one has nothing more to say to
  // them, since its stores would wait for these, to lines that others have read. Readers may be
  // looking: the number is written last.
  void tell() noexcept {
    if (left_.call == 0) [[likely]]
      return;
    TimesRing::Times& own = segment_.rank(rank_).times.of_call[left_.call % kTimedCalls];
    own.call.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    own.entered.store(left_.entered, std::memory_order_relaxed);
    own.left.store(left_.left, std::memory_order_relaxed);
    own.call.store(left_.call, std::memory_order_release);
    left_.call = 0;
  }
  // Seconds; nothing where not all ranks have said so, or do no longer.
  std::optional<double> of(std::uint64_t call) const noexcept;

 private:
  static std::uint64_t now() noexcept {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
  }

  Segment segment_;
  struct Left {
    std::uint64_t call = 0, entered = 0, left = 0;  // 0: nothing is to be told
  };

  int rank_;
  std::uint64_t entered_ = 0;
  Left left_;
};

}  // namespace coll

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
  // It leaves it, once it has entered: call number `call`. Readers may be looking: the number is
  // written last.
  void leave(std::uint64_t call) noexcept {
    TimesRing::Times& own = segment_.rank(rank_).times.of_call[call % kTimedCalls];
    own.call.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    own.entered.store(entered_, std::memory_order_relaxed);
    own.left.store(now(), std::memory_order_relaxed);
    own.call.store(call, std::memory_order_release);
    entered_ = 0;
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
  int rank_;
  std::uint64_t entered_ = 0;
};

}  // namespace coll

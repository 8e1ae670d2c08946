// SPDX-License-Identifier: Apache-2.0
#include "communicator/call_times.h"

#include <algorithm>

namespace coll {

std::optional<double> CallTimes::of(std::uint64_t call) const noexcept {
  std::uint64_t entered = 0, left = 0;
  for (std::uint32_t r = 0; r < segment_.shape().ranks; ++r) {
    const TimesRing::Times& times =
        segment_.rank(static_cast<int>(r)).times.of_call[call % kTimedCalls];
    if (times.call.load(std::memory_order_acquire) != call) return std::nullopt;
    entered = std::max(entered, times.entered.load(std::memory_order_relaxed));
    left = std::max(left, times.left.load(std::memory_order_relaxed));
    std::atomic_thread_fence(std::memory_order_acquire);
    if (times.call.load(std::memory_order_relaxed) != call) return std::nullopt;
  }
  if (left <= entered) return std::nullopt;
  return static_cast<double>(left - entered) * 1e-9;
}

}  // namespace coll

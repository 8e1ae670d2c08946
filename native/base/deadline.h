// SPDX-License-Identifier: Apache-2.0
// A point in time after which to give up, on the monotonic clock: a change of the wall clock or of
// the time zone neither shortens nor lengthens a wait.
#pragma once

#include <algorithm>
#include <chrono>

namespace coll {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Deadline(double seconds)
      // A year is for ever, and far from the end of the clock's 64 bits.
      : end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(std::clamp(seconds, 0.0, kYear)))) {}

  bool passed() const noexcept { return Clock::now() >= end_; }

  // Milliseconds left, rounded up, never more than `most`: what poll() wants.
  int milliseconds(int most) const noexcept {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
    return static_cast<int>(std::clamp<decltype(left + 0)>(left, 0, most));
  }

 private:
  static constexpr double kYear = 365.0 * 24 * 3600;

  Clock::time_point end_;
};

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Whether calls have come to take clearly more or less than they did, as when a virtual machine has
// moved its cores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace coll {

class Drift {
 public:
  // One call of a plan took so long; calls of another plan say nothing of those before.
  bool shown_by(std::uint64_t plan, double seconds) noexcept {
    if (plan != plan_) *this = of(plan);
    least_ = std::min(least_, seconds);
    if (++seen_ < kWindow) return false;
    const double usual = usual_, now = least_;
    *this = of(plan, usual == 0 ? now : usual);
    return usual != 0 && (now > kClearly * usual || now * kClearly < usual);
  }

 private:
  static constexpr int kWindow = 4;  // of which the shortest counts: others were held up
  static constexpr double kClearly = 1.3;

  static Drift of(std::uint64_t plan, double usual = 0) noexcept {
    Drift made;
    made.plan_ = plan;
    made.usual_ = usual;
    return made;
  }

  std::uint64_t plan_ = 0;
  double usual_ = 0;  // 0: not known yet
  double least_ = std::numeric_limits<double>::infinity();
  int seen_ = 0;
};

}  // namespace coll

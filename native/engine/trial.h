// SPDX-License-Identifier: Apache-2.0
// Which of two ways is faster at present? Ordinary or non-temporal stores, one plan or another: the
// answer depends on how far apart the cores are and on what else runs, and virtual machines move
// their cores every few seconds. So every use is timed, and now and then the other way is tried.
#pragma once

#include <cstddef>

namespace coll {

class Trial {
 public:
  // How many times as fast the second way must be.
  explicit Trial(double clearly = 1) : clearly_(clearly) {}

  // Whether to go the second way now.
  bool second() noexcept {
    const bool usual = usually_second();
    ++uses_;
    if (uses_ <= kBeginning) return uses_ % 2 == 0;
    return uses_ % kTryEvery == 0 ? !usual : usual;
  }

  void note(bool second, std::size_t bytes, double ns) noexcept {
    double& known = per_byte_[second ? 1 : 0];
    const double now = ns / static_cast<double>(bytes);
    // Falls at once and rises slowly: a use that was interrupted says nothing about the way.
    known = known == 0 || now < known ? now : known + kRise * (now - known);
  }

 private:
  static constexpr double kRise = 0.2;
  // In turns at first: what is used for the first time is slow.
  static constexpr unsigned kBeginning = 6, kTryEvery = 16;

  bool usually_second() const noexcept {
    return per_byte_[1] > 0 && per_byte_[0] > clearly_ * per_byte_[1];
  }

  double clearly_;
  double per_byte_[2] = {0, 0};  // ns
  unsigned uses_ = 0;
};

}  // namespace coll

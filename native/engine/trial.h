// SPDX-License-Identifier: Apache-2.0
// Which of two ways is faster at present? Ordinary or non-temporal stores, one plan or another: the
// answer depends on how far apart the cores are and on what else runs, and virtual machines move
// their cores every few seconds. So every use is timed, and now and then the other way is tried.
#pragma once

#include <algorithm>
#include <cstddef>

namespace coll {

class Trial {
 public:
  // How many times as fast the second way must be. `alert`, of uses that are all alike: where the
  // usual way takes much longer twice in a row, the other one is tried kRest uses after the last
  // try; else as often as costs a hundredth of the time. Others are tried every kTryOften uses, the
  // seldomer the worse they were.
  explicit Trial(double clearly = 1, bool alert = false) : clearly_(clearly), alert_(alert) {}

  // Whether to go the second way now.
  bool second() noexcept {
    const bool usual = usually_second();
    ++uses_;
    trying_ = uses_ <= kBeginning || uses_ >= next_;
    if (uses_ <= kBeginning) return uses_ % 2 == 0;
    if (uses_ < next_) return usual;
    interval_ = alert_               ? by_cost(!usual)
                : much_worse(!usual) ? std::min(2 * interval_, kTrySeldom)
                                     : kTryOften;
    next_ = uses_ + interval_;
    rested_ = uses_ + kRest;
    return !usual;
  }

  // Whether what second() said last is for the sake of learning.
  bool trying() const noexcept { return trying_; }

  void note(bool second, std::size_t bytes, double ns) noexcept {
    double& known = per_byte_[second ? 1 : 0];
    const double now = ns / static_cast<double>(bytes);
    if (alert_ && second == usually_second()) {
      slow_ = known > 0 && now > kMuch * known ? slow_ + 1 : 0;
      if (slow_ >= kInARow) next_ = std::min(next_, std::max(uses_ + 1, rested_));
    }
    // Falls at once and rises slowly: a use that was interrupted says nothing about the way. Where
    // all are alike, two in a row have to say so: arrays may be new.
    double& last = last_[second ? 1 : 0];
    const double slow = alert_ ? std::min(now, last) : now;
    last = now;
    known = known == 0 || now < known ? now : std::max(known, known + kRise * (slow - known));
  }

 private:
  static constexpr double kRise = 0.2;
  // In turns at first: what is used for the first time is slow.
  static constexpr unsigned kBeginning = 6, kTryOften = 16, kTrySeldom = 128;
  static constexpr double kMuch = 1.25;
  static constexpr double kShare = 0.01, kLeast = 4;  // by_cost(),
  static constexpr unsigned kSeldomest = 1024;  // as what reads by the kernel may take 8 times
  // Between tries, however slow the usual way has become.
  static constexpr unsigned kRest = 8, kInARow = 2;

  unsigned by_cost(bool second) const noexcept {
    const double other = per_byte_[second ? 1 : 0], usual = per_byte_[second ? 0 : 1];
    if (other == 0 || usual == 0) return kTryOften;  // not known yet
    const double more = other / usual - 1;
    return static_cast<unsigned>(std::clamp(more / kShare, kLeast, double{kSeldomest}));
  }

  bool much_worse(bool second) const noexcept {
    return per_byte_[second ? 1 : 0] > kMuch * per_byte_[second ? 0 : 1];
  }

  bool usually_second() const noexcept {
    return per_byte_[1] > 0 && per_byte_[0] > clearly_ * per_byte_[1];
  }

  double clearly_;
  bool alert_, trying_ = false;
  double per_byte_[2] = {0, 0}, last_[2] = {0, 0};  // ns
  unsigned uses_ = 0, interval_ = kTryOften / 2, next_ = kBeginning + kTryOften;
  unsigned rested_ = 0, slow_ = 0;
};

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Ordinary or non-temporal stores? Where two cores share no cache, ordinary stores to lines that
// the peer has just read crawl (2 GB/s against 30); where they do, non-temporal ones cost the
// reader its cache. A result that is larger than the caches is written faster around them, a
// smaller one is read again sooner from them. Virtual machines move their cores every few seconds:
// so every rank times its own writes and now and then tries the other kind. It is its own affair:
// no peer can tell.
#pragma once

#include <cstddef>

namespace coll {

class StoreChoice {
 public:
  // Writes of fewer bytes are not worth the question.
  static constexpr std::size_t kBulky = 32 << 10;

  // How many times as fast non-temporal stores must be.
  explicit StoreChoice(double clearly) : clearly_(clearly) {}

  // For the next bulky write.
  bool streaming() noexcept {
    const bool usual = usually_streams();
    if (per_byte_[0] == 0) return false;
    if (per_byte_[1] == 0) return true;
    return ++writes_ % kTryEvery == 0 ? !usual : usual;
  }

  // For one that is not timed.
  bool usually_streams() const noexcept {
    return per_byte_[1] > 0 && per_byte_[0] > clearly_ * per_byte_[1];
  }

  void note(bool streamed, std::size_t bytes, double ns) noexcept {
    double& known = per_byte_[streamed ? 1 : 0];
    const double now = ns / static_cast<double>(bytes);
    // Falls at once and rises slowly: a write that was interrupted says nothing about stores.
    known = known == 0 || now < known ? now : known + kRise * (now - known);
  }

 private:
  static constexpr double kRise = 0.2;
  static constexpr unsigned kTryEvery = 32;

  double clearly_;
  double per_byte_[2] = {0, 0};  // ns, ordinary and streamed
  unsigned writes_ = 0;
};

}  // namespace coll

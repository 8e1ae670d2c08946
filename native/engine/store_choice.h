// SPDX-License-Identifier: Apache-2.0
// Ordinary or non-temporal stores into the stage? Where two cores share no cache, ordinary stores
// to lines that the peer has just read crawl (2 GB/s against 30); where they do, non-temporal ones
// cost the reader its cache. Virtual machines move their cores every few seconds: so every rank
// times its own writes and now and then tries the other kind. It is its own affair: no peer can
// tell.
#pragma once

#include <cstddef>

namespace coll {

class StoreChoice {
 public:
  // Writes of fewer bytes are not worth the question.
  static constexpr std::size_t kBulky = 32 << 10;

  // For the next bulky write.
  bool streaming() noexcept {
    const bool usual = per_byte_[1] > 0 && per_byte_[0] > kClearly * per_byte_[1];
    if (per_byte_[0] == 0) return false;
    if (per_byte_[1] == 0) return true;
    return ++writes_ % kTryEvery == 0 ? !usual : usual;
  }

  void note(bool streamed, std::size_t bytes, double ns) noexcept {
    double& known = per_byte_[streamed ? 1 : 0];
    const double now = ns / static_cast<double>(bytes);
    // Falls at once and rises slowly: a write that was interrupted says nothing about stores.
    known = known == 0 || now < known ? now : known + kRise * (now - known);
  }

 private:
  // Between the ratio seen on near cores (up to 3.6) and on far ones (about 14).
  static constexpr double kClearly = 5, kRise = 0.2;
  static constexpr unsigned kTryEvery = 32;

  double per_byte_[2] = {0, 0};  // ns, ordinary and streamed
  unsigned writes_ = 0;
};

}  // namespace coll

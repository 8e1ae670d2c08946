// SPDX-License-Identifier: Apache-2.0
// Whether to wait busily before sleeping. It pays while waits are about as short as waking up
// takes. Bytes that come as fast as a link carries them come in lumps that are further apart:
// spinning between these makes nothing faster, and takes the core from whoever computes beside the
// transfer.
#pragma once

#include <algorithm>
#include <chrono>

namespace coll {

class Spin {
 public:
  using Duration = std::chrono::steady_clock::duration;

  // `longest`: of one busy wait; 0: never.
  explicit Spin(Duration longest) noexcept : longest_(longest) {}

  // How long to spin now.
  Duration now() const noexcept {
    return usual_ <= kWorth * longest_ ? longest_ : Duration::zero();
  }

  // A wait took so long, spinning and sleeping. One very long one among many short ones, as for a
  // rank that comes late, counts as kMost.
  void waited(Duration time) noexcept {
    usual_ += (std::min(time, kMost * longest_) - usual_) / kMemory;
  }

 private:
  static constexpr int kWorth = 2;   // a sleep's end comes late, so short waits seem longer
  static constexpr int kMost = 8;    // in `longest`
  static constexpr int kMemory = 8;  // waits

  Duration longest_, usual_{};
};

}  // namespace coll

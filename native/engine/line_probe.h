// SPDX-License-Identifier: Apache-2.0
// How long it takes to own a line that the peers have just read tells how far apart the cores are:
// measured on the line of a rank's progress, which all of them poll, it costs nobody else anything.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/placement.h"

namespace coll {

class LineProbe {
 public:
  // Stores to a word of such a line.
  void store(std::atomic<std::uint64_t>& word, std::uint64_t value) noexcept {
    // What is still on its way to memory would be waited for as well.
    drained_.exchange(0);
    const auto begin = std::chrono::steady_clock::now();
    word.exchange(value);
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
    note(spent.count());
  }

  void note(double ns) noexcept { samples_[next_++ % samples_.size()] = ns; }

  // By the shortest of the last samples: a rank may lose its core in the middle of one.
  Placement placement() const noexcept {
    return *std::ranges::min_element(samples_) > kFar ? Placement::far : Placement::near;
  }

 private:
  // Near cores take 25 to 60 ns and the clock 20, far ones 250.
  static constexpr double kFar = 130;

  std::array<double, 2> samples_{};
  std::size_t next_ = 0;
  std::atomic<std::uint64_t> drained_{0};
};

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// How long it takes to own a line that the peers have read tells how far apart the cores are.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/placement.h"

namespace coll {

class LineProbe {
 public:
  // `assumed`: what to tell instead of what is measured.
  explicit LineProbe(std::optional<Placement> assumed = std::nullopt) noexcept
      : assumed_(assumed) {}

  // Writes the placement to a word that the peers have read since the last time, and nobody has
  // written.
  void tell(std::atomic<std::uint64_t>& word) noexcept {
    // What is still on its way to memory would be waited for as well.
    drained_.exchange(0);
    const auto begin = std::chrono::steady_clock::now();
    word.exchange(word_of(placement()));
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
    note(spent.count());
    word.store(word_of(placement()), std::memory_order_relaxed);
  }

  void note(double ns) noexcept { samples_[next_++ % samples_.size()] = ns; }

  // By the shortest of the last samples: a rank may lose its core in the middle of one.
  Placement placement() const noexcept {
    if (assumed_) return *assumed_;
    return *std::ranges::min_element(samples_) > kFar ? Placement::far : Placement::near;
  }

 private:
  // Near cores take 25 to 60 ns and the clock 20, far ones 250.
  static constexpr double kFar = 130;

  static std::uint64_t word_of(Placement placement) noexcept {
    return static_cast<std::uint64_t>(placement);
  }

  std::optional<Placement> assumed_;
  std::array<double, 2> samples_{};
  std::size_t next_ = 0;
  std::atomic<std::uint64_t> drained_{0};
};

}  // namespace coll

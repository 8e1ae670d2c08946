// SPDX-License-Identifier: Apache-2.0
// Sums over the threads of a block, in their order; and a number that one of them tells the others.
// Rooms in shared memory take turns, so that one barrier each is enough: who writes to one again
// has met all others, who were done with it, at the barrier in between.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/counters.h"

namespace coll::cuda {

// Of a block; a line for each warp, or, where threads are none of a GPU's, for each of those.
inline constexpr std::uint32_t kScanLines = 32;

struct ScanRoom {
  std::uint64_t sums[2][kScanLines];
  std::uint32_t told[2];
};

template <class Ways, class Group>
class BlockScan {
 public:
  constexpr BlockScan(Group& group, ScanRoom* room) noexcept : group_(group), room_(room) {}

  constexpr void sync() noexcept {
    if constexpr (Ways::barriers) group_.sync();
  }

  struct Sums {
    std::uint64_t before, all;
  };
  // Of the values of the threads before this one, and of all.
  constexpr Sums sums(std::uint64_t value) noexcept {
    std::uint64_t* const line = room_->sums[turn_ ^= 1];
    const auto [mine, lines, upto] = within_warp(value);
    if (last_of_warp()) line[mine] = upto;
    sync();
    Sums found{upto - value, 0};
    for (std::uint32_t i = 0; i < lines; ++i) {
      if (i < mine) found.before += line[i];
      found.all += line[i];
    }
    return found;
  }

  // What thread 0 says.
  constexpr std::uint32_t told(std::uint32_t by_first) noexcept {
    std::uint32_t* const room = &room_->told[telling_ ^= 1];
    if (group_.thread() == 0) *room = by_first;
    sync();
    return *room;
  }

  // Whether this block is the last of so many to come here; it sees what all others have done. The
  // word is 0 before and after.
  constexpr bool last(std::uint32_t* arrived, std::uint32_t blocks) noexcept {
    sync();
    std::uint32_t before = 0;
    if (group_.thread() == 0) before = Counters<Ways>::arrive(arrived);
    if (told(before) != blocks - 1) return false;
    if (group_.thread() == 0) *arrived = 0;
    return true;
  }

 private:
  struct Upto {
    std::uint32_t line, lines;
    std::uint64_t sum;
  };
#if defined(__CUDA_ARCH__)
  static constexpr std::uint32_t kWarp = 32;
  constexpr bool last_of_warp() const noexcept { return group_.thread() % kWarp == kWarp - 1; }
  constexpr Upto within_warp(std::uint64_t value) const noexcept {
    const auto thread = static_cast<std::uint32_t>(group_.thread());
    for (std::uint32_t far = 1; far < kWarp; far *= 2) {
      const std::uint64_t lower = __shfl_up_sync(0xffffffffU, value, far);
      if (thread % kWarp >= far) value += lower;
    }
    return {thread / kWarp, static_cast<std::uint32_t>(group_.threads()) / kWarp, value};
  }
#else
  constexpr bool last_of_warp() const noexcept { return true; }
  constexpr Upto within_warp(std::uint64_t value) const noexcept {
    return {static_cast<std::uint32_t>(group_.thread()),
            static_cast<std::uint32_t>(group_.threads()), value};
  }
#endif

  Group& group_;
  ScanRoom* room_;
  std::uint32_t turn_ = 0, telling_ = 0;
};

}  // namespace coll::cuda

// SPDX-License-Identifier: Apache-2.0
// How many turns the tiles of a call take through a slot, each one further in it, until a line is
// written again.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

#include "base/placement.h"

namespace coll {

// What is staged of a tile: by all ranks, and by the one that stages most.
struct StageBytes {
  std::size_t all = 0, longest = 0;
};

// What two near cores stage between two uses of a line.
inline std::size_t rested_bytes(std::size_t second_cache) noexcept {
  constexpr std::size_t kLeast = 256 << 10, kMost = 4 << 20;
  return 2 * std::clamp(second_cache, kLeast, kMost);
}

// Before a core writes a line that another one has read, that one's copy must go: where the second
// caches still hold what was staged last time, calls of two near cores take twice as long. So short
// tiles go through more of the slots than they need: what all ranks stage is twice such a cache.
// Around far caches it flies past the second ones anyway; there it must be out of the first ones.
// A power of two; 1 where nothing is staged.
inline std::size_t slot_turns(StageBytes tile, std::size_t depth, std::size_t slot_bytes,
                              std::size_t second_cache, Placement placement) noexcept {
  constexpr std::size_t kFirstCaches = 128 << 10;
  if (tile.longest == 0) return 1;
  const std::size_t room = std::max(std::bit_floor(slot_bytes / tile.longest), std::size_t{1});
  const bool far = placement == Placement::far;
  const std::size_t beyond = far ? kFirstCaches : rested_bytes(second_cache);
  const std::size_t turn = depth * (far ? tile.longest : tile.all);
  return std::min(std::bit_ceil((beyond + turn - 1) / turn), room);
}

}  // namespace coll

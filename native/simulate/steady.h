// SPDX-License-Identifier: Apache-2.0
// How long a call of many tiles takes: of few, as it is played; of more, each further tile as long
// as one in the middle of those.
#pragma once

#include <algorithm>
#include <cmath>

namespace coll {

// In how many tiles the chunks of a vector travel, and how many bytes of a chunk each has.
struct Tiling {
  double chunk = 0;  // bytes of the longest chunk
  double tile = 0;   // bytes of a chunk in each tile but the last
  // Of more than an int holds, so many: all that are counted behave alike.
  int count() const noexcept {
    constexpr double kMost = 1 << 30;
    return chunk > tile && tile > 0 ? static_cast<int>(std::fmin(std::ceil(chunk / tile), kMost))
                                    : 1;
  }
  double bytes(int number, int tiles) const noexcept {
    return number + 1 < tiles ? tile : std::fmin(tile, chunk - tile * (tiles - 1));
  }
  // The same tiles, so many of them, all full.
  Tiling first(int tiles) const noexcept { return {tile * tiles, tile}; }
};

// How many calls are played back to back. The first half of them begins with all ranks at one time
// and nothing in the way, and does not count.
inline int calls_to_play(int tiles) noexcept { return 2 * std::clamp(24 / tiles, 2, 8); }

// `seconds`: of a call of such a tiling. `lag`: tiles until all of a call's ops are at work.
template <class Seconds>
double steady(const Tiling& tiling, int lag, Seconds seconds) {
  // Slots come round in a power of two of tiles, at most 8: two calls that differ by whole rounds
  // find the same slots free.
  constexpr int kFew = 16, kRound = 8;
  const int few = kFew + (lag + kRound - 1) / kRound * kRound;
  if (tiling.count() <= 2 * few) return seconds(tiling);
  const double once = seconds(tiling.first(few)), twice = seconds(tiling.first(2 * few));
  const double more = tiling.chunk / tiling.tile - 2 * few;
  return twice + more * std::fmax(twice - once, 0) / few;
}

}  // namespace coll

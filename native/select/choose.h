// SPDX-License-Identifier: Apache-2.0
// Which plan a call gets. Reads only values that are equal on all ranks: the choice must be.
#pragma once

#include <cstddef>

#include "plan/plan.h"
#include "schedule/schedule.h"

namespace coll {

// All that distinguishes one plan of a group from another.
struct Choice {
  int algorithm = 0;  // in algorithms()
  Mode mode = Mode::staged;
  int lag = 0;
  std::size_t tile_bytes = 0;  // stage bytes per tile
  bool operator==(const Choice&) const = default;
};

inline constexpr int kUnchosen = -1;

// `bytes` of the whole vector. `algorithm` and `mode` are the caller's wishes or kUnchosen. Throws
// Error where a wish is no algorithm of this kind, or not for so many ranks.
Choice choose(Kind kind, int ranks, std::size_t bytes, int algorithm = kUnchosen,
              int mode = kUnchosen);

}  // namespace coll

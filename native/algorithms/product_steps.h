// SPDX-License-Identifier: Apache-2.0
// The two forms of product.h, for one rank.
#pragma once

#include <span>

#include "algorithms/levels.h"
#include "algorithms/product.h"
#include "algorithms/shares.h"
#include "schedule/builder.h"

namespace coll {

// Reduce-scatter up the levels, allgather down again, of the chunks from the first one on.
void product_of_teams(Builder& b, Kind kind, const Levels& levels, const Shares& shares,
                      std::span<const LevelPhase> phases, int first = 0);
// One rank of each group talks for it.
void product_of_leaders(Builder& b, Kind kind, const Levels& levels,
                        std::span<const LevelPhase> phases);

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Proves a lowered plan, independently of how its waits were derived: calls back to back are played
// in reference order with what the written waits imply (vector clocks). Every read must follow the
// last write, every write the last write and all reads since, by happens-before; values are tagged
// with call and tile. Right in reference order and free of races is right in every execution. What
// is stored non-temporally happens before what knows of a fence behind it.
#pragma once

#include <array>
#include <vector>

#include "plan/plan.h"
#include "prove/claims.h"
#include "prove/report.h"

namespace coll {

inline constexpr int kCallsInARow = 3;
using TilesPerCall = std::array<int, kCallsInARow>;

// How many tiles the calls of a proof have: few, more than the ring has slots, and changing.
std::vector<TilesPerCall> usual_tiles(const Plan& plan);

// Of the claims, a plan is held to those about summation trees.
Report prove(const Plan& plan, bool in_place, const std::vector<TilesPerCall>& tiles,
             unsigned checks = kAllChecks, const Claims& claims = {});

}  // namespace coll

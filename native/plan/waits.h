// SPDX-License-Identifier: Apache-2.0
// Derives the waits of a plan: each conflicting pair of accesses on two ranks is ordered as in the
// reference order (call, tile + lag, round, phase, rank), less what is implied. Entry and exit
// barriers, acknowledgements and the re-use of slots all follow from this one rule.
#pragma once

#include "plan/plan.h"

namespace coll {

// Fills waits and posts. The caller's buffers are taken to be aliased (in place): what is safe then
// is safe out of place, so one plan serves ranks that differ in it.
void derive_waits(Plan& plan);

}  // namespace coll

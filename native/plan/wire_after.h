// SPDX-License-Identifier: Apache-2.0
// Which ops of a rank's plan for the wire wait for which others of the same rank.
#pragma once

#include "plan/wire_plan.h"

namespace coll {

// Orders each two accesses of an op to the same cells or area, one of them a write, as the plan's
// own order has them; leaves out what follows from the rest. Overwrites what was there.
void derive_after(WirePlan& plan);

// To be called after that. In a round in which a rank hears from several, each of its sends waits
// for all of these messages of `pace` tiles before: who exchanges with several at one time keeps
// step with all of them. Nothing else holds back a connection that is faster than the others; it
// would be done early, and the slowest be left over, alone, with the link all but empty.
void keep_pace(WirePlan& plan, int pace);

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Which ops of a rank's plan for the wire wait for which others of the same rank.
#pragma once

#include "plan/wire_plan.h"

namespace coll {

// Orders each two accesses of an op to the same cells or area, one of them a write, as the plan's
// own order has them; leaves out what follows from the rest. Overwrites what was there.
void derive_after(WirePlan& plan);

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// From schedule to the plan of one rank for the wire. Which ops wait for which is derived from the
// cells that they read and write, never written.
#pragma once

#include "plan/wire_plan.h"
#include "schedule/schedule.h"

namespace coll {

struct WireLowering {
  int depth = 3;  // tiles of a message that may be under way in the stage
  int lag = 1;    // tiles between one round and the next: software pipelining
  int pace = 0;   // tiles that who exchanges with several may be ahead of any; 0: any number
};

// The schedule must have been proved. Throws Error(invalid_argument) for a depth below 1 or a
// negative lag or pace.
WirePlan lower_for_wire(const Schedule& schedule, int rank, const WireLowering& how = {});

}  // namespace coll

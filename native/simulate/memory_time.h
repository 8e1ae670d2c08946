// SPDX-License-Identifier: Apache-2.0
// How long a call takes among ranks that share memory: its plan, op by op, tile by tile, with all
// its waits, on a machine of known costs. The plan is the one that would run.
#pragma once

#include "plan/plan.h"
#include "simulate/op_costs.h"
#include "topology/machine_costs.h"

namespace coll {

// Seconds from call to call where one follows another on all ranks; or of a call alone. The plan
// must be proved; all buffers of a plan that pulls or pushes are taken to be within reach.
// Looks up (base/looks.h).
double memory_seconds(const Plan& plan, const MachineCosts& machine, const MemoryTask& task);

}  // namespace coll

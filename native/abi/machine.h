// SPDX-License-Identifier: Apache-2.0
// The costs of a machine, as C has them and as the simulator does.
#pragma once

#include "collectives.h"
#include "topology/machine_costs.h"

namespace coll {

// Throws Error(invalid_argument) where a value is none.
MachineCosts costs_in(const coll_machine& machine);
coll_machine machine_of(const MachineCosts& costs);

}  // namespace coll

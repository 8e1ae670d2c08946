// SPDX-License-Identifier: Apache-2.0
// Proves the plans of all ranks for the wire, independently of how their waits were derived. They
// are run with connections that hold nothing (a message passes when its sender and its receiver
// both have come to it): what does not get stuck there never does, since no rank ever chooses.
// Every two accesses to a cell or an area are ordered on their rank (wire_order.h), so the values
// of that one run are those of all.
#pragma once

#include <vector>

#include "plan/wire_plan.h"
#include "prove/claims.h"
#include "prove/report.h"

namespace coll {

// `plans` by rank. Of the claims, plans are held to those about summation trees.
Report prove_wire(const std::vector<WirePlan>& plans, bool in_place, int tiles,
                  unsigned checks = kAllChecks, const Claims& claims = {});

// The same for the numbers of tiles that show all: one, a few, and more than the stage has slots.
Report prove_wire(const std::vector<WirePlan>& plans, bool in_place, const Claims& claims = {});

}  // namespace coll

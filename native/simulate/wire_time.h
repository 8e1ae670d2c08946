// SPDX-License-Identifier: Apache-2.0
// How long a call takes between machines: the plans of all ranks, op by op, tile by tile, in the
// order that what they wait for allows, with every message on the links of a network.
#pragma once

#include <span>

#include "plan/wire_plan.h"
#include "topology/network.h"

namespace coll {

struct WireTask {
  double bytes = 0;       // of the longest buffer of a rank
  double tile_bytes = 0;  // of a chunk; 0: chunks travel whole
  bool alone = false;     // all ranks begin a call together once the one before it is over
};

// Seconds from call to call where one follows another on all ranks, or of a call alone, behind a
// pause in which a program computes. plans[r] is that of rank r, all of one lowering; the ranks are
// the first of the network. A rank does one thing at a time, and waits for a core where several
// share some; its messages wait for links, never for a receiver. Where calls move more than a
// bucket of tokens regains, it counts as empty, but for what the pause brings. Throws
// Error(invalid_argument) where the network has too few ranks. Looks up (base/looks.h).
double wire_seconds(std::span<const WirePlan> plans, const Network& network, const WireTask& task);

}  // namespace coll

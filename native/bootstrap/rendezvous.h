// SPDX-License-Identifier: Apache-2.0
// How the processes of a job on one machine find each other.
#pragma once

#include "bootstrap/channel.h"
#include "bootstrap/handshake.h"
#include "bootstrap/membership.h"

namespace coll {

// Blocks until all ranks of the job have entered one segment; called once by each of them, with
// equal arguments but for the rank and `terms.refusal`, which all are told. Rank 0 makes a memfd
// and listens on an abstract socket named from the user, the job and the attempt; the others are
// given the memfd there. Afterwards nothing is left of it but the memfd's descriptor, for groups
// formed later: no socket, no name.
//
// Throws Error: invalid_argument (also on all ranks, where one refuses, or trusts other networks
// than rank 0), bootstrap (refused, and why), timeout (who is missing), peer_lost
// (a rank ended meanwhile), aborted (`stop` said so), out_of_memory, system.
Membership rendezvous(const Identity& identity, const SegmentShape& shape, double timeout_s,
                      const Stop& stop = {}, const Terms& terms = {});

}  // namespace coll

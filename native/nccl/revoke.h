// SPDX-License-Identifier: Apache-2.0
// Communicators whose calls were ended on all ranks, and what can still be made of them.
#pragma once

#include "nccl/communicator.h"

namespace coll::nccl {

// Ends what is under way on it, on all ranks, and waits for that end; from then on its engine only
// serves those that shrink it.
void stop(ncclComm& comm);

// Of one that was revoked: an engine that serves calls again, of the same ranks, which all do this.
// Throws Refusal where not all live.
void renew(ncclComm& comm);

}  // namespace coll::nccl

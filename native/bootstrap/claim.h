// SPDX-License-Identifier: Apache-2.0
// The right to be one rank of one job: no two processes of a machine have it at one time. Without
// it two jobs that are started at one moment under one name could form groups of some ranks of
// each, and sum what does not belong together.
#pragma once

#include <memory>

#include "bootstrap/handshake.h"
#include "transport/descriptor.h"

namespace coll {

// Held as long as any copy lives, and by the process that made it alone: a forked child has none.
// A process may make it again (for its next group), another gets Error(bootstrap), at once.
using Claim = std::shared_ptr<Descriptor>;

Claim claim_rank(const Identity& identity);

}  // namespace coll

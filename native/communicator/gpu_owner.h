// SPDX-License-Identifier: Apache-2.0
// What one rank can tell of a call of arrays on a GPU before it tells anybody of it.
#pragma once

#include "communicator/call.h"

namespace coll {

// Throws Error(invalid_argument): it is no valid call, or a buffer is not memory of that GPU.
void check_gpu_call(const Call& call, int rank, int ranks, int device);

}  // namespace coll

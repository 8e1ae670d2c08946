// SPDX-License-Identifier: Apache-2.0
// Which plan a call of arrays on GPUs runs there, by what is equal on all ranks.
#pragma once

#include "communicator/call.h"
#include "select/choose.h"

namespace coll {

// Throws Error(unsupported): the kernels do not have it, whatever its plan.
void refuse_unsupported_on_gpu(const Call& call);

// Whose ranks reach each other's arrays, or else only what each shows the others. Throws Error.
Choice gpu_choice(const Call& call, int ranks, bool reach_arrays);

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Small collectives of one group as one: their vectors are laid side by side, travel as one, and
// are taken apart again. All ranks give the same ones in the same order, so all join the same.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "nccl/operation.h"

namespace coll::nccl {

// Which operations go together, in the order in which they run: first come, first served. Depends
// on what is equal on all ranks alone.
std::vector<std::vector<const Operation*>> joined(std::span<const Operation> operations,
                                                  const ncclComm& comm);

// Runs operations that go together.
ncclResult_t run_joined(ncclComm& comm, const std::vector<const Operation*>& operations);

}  // namespace coll::nccl

// SPDX-License-Identifier: Apache-2.0
// How long the operations of a group would take: the plans that would run, simulated.
#pragma once

#include <span>

#include "nccl/operation.h"

namespace coll::nccl {

// Seconds, on a usual machine, of all operations of one communicator one after another. NaN where
// that is not known: between machines, and of arrays of GPUs.
double predicted_seconds(const ncclComm& comm, std::span<const Operation> operations);

}  // namespace coll::nccl

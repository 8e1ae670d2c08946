// SPDX-License-Identifier: Apache-2.0
// What a thread asks for between ncclGroupStart() and ncclGroupEnd(), and how that runs: what goes
// to one communicator one after another, in its order, different communicators at the same time.
#pragma once

#include <functional>
#include <memory>

#include "nccl/operation.h"

namespace coll::nccl {

// Work on a communicator that is no operation: to join it, to split it.
using Work = std::function<ncclResult_t(ncclComm&)>;

// Runs it, or, in a group, keeps it for the end; where the communicator does not block,
// ncclInProgress is returned and its worker goes on.
ncclResult_t submit(ncclComm& comm, const Operation& operation);
ncclResult_t submit(ncclComm& comm, Work work);

// The same for a communicator that `connect`, which may throw, joins: what `*place` becomes. In a
// group it stays, to be destroyed, where it was not joined.
ncclResult_t submit_new(std::unique_ptr<ncclComm> born, ncclComm_t* place,
                        std::function<void(ncclComm&)> connect);

// A function that failed within a group makes the group fail.
ncclResult_t noted(ncclResult_t result) noexcept;

// Whether this thread's group, which has not ended, needs it.
bool is_in_group(const ncclComm& comm);
// It does until its end, if there is one: a communicator is made of this one then.
void need_in_group(const ncclComm& parent);

void start_group();
// Throw Refusal where none was started.
ncclResult_t end_group();
// Drops the group, and tells how many seconds it would have taken; NaN where that is not known, as
// of what is no operation, and of a group within another one.
ncclResult_t simulate_group(double& seconds);

}  // namespace coll::nccl

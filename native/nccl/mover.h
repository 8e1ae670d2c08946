// SPDX-License-Identifier: Apache-2.0
// Who moves on what a call has left under way, while no thread is in a call: else a put that is
// longer than what fits between two ranks would wait for its sender's next call.
#pragma once

struct ncclComm;

namespace coll::nccl {

// To be said at the end of a call, by its thread.
void keep_moving(ncclComm& comm);

// Nothing is moved on any more, until another call has left something under way.
void stand_still(ncclComm& comm);

// Waits until all puts of this rank are on their way, a few seconds at most: their receivers may
// never wait for them.
void farewell(ncclComm& comm);

}  // namespace coll::nccl

// SPDX-License-Identifier: Apache-2.0
// Communicators that come to be of others, step by step.
#include <utility>

#include "abi/handle.h"

namespace coll {
namespace {

Status hand_out(coll_comm& comm, Status status) {
  if (status != Status::ok) return status;  // in progress
  if (comm.forming->member()) *comm.made = comm.take().release();
  comm.forming.reset();
  return Status::ok;
}

}  // namespace

Status form(coll_comm& comm, std::unique_ptr<Forming> forming,
            std::function<std::unique_ptr<coll_comm>()> take, coll_comm** made) {
  if (comm.forming) {
    throw Error(Status::invalid_argument,
                "the call before is still in progress: resume it first, or abort");
  }
  comm.forming = std::move(forming);
  comm.take = std::move(take);
  comm.made = made;
  try {
    return hand_out(comm, comm.forming->start());
  } catch (...) {
    comm.forming.reset();
    throw;
  }
}

Status resume_forming(coll_comm& comm) {
  try {
    return hand_out(comm, comm.forming->resume());
  } catch (...) {
    comm.forming.reset();
    throw;
  }
}

}  // namespace coll

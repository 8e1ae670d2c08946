// SPDX-License-Identifier: Apache-2.0
// Calls of several steps, begun, resumed, and what comes of them handed out.
#include <utility>

#include "abi/gpu.h"
#include "abi/handle.h"

namespace coll {
namespace {

Status deliver(coll_comm& comm, Status status) {
  if (status != Status::ok) return status;  // in progress
  comm.deliver();
  comm.steps.reset();
  return Status::ok;
}

}  // namespace

Status take_steps(coll_comm& comm, std::unique_ptr<Steps> steps, std::function<void()> deliver_to) {
  if (comm.steps) {
    // Of an abort, as by Ctrl-C, whoever was in the steps does not come back to them.
    on_either(&comm, [](auto& communicator) { communicator.check_failed(); });
    throw Error(Status::invalid_argument,
                "the call before is still in progress: resume it first, or abort");
  }
  comm.steps = std::move(steps);
  comm.steps->stop_by(comm.stop);
  comm.deliver = std::move(deliver_to);
  try {
    return deliver(comm, comm.steps->start());
  } catch (...) {
    comm.steps.reset();
    end_hopeless_launches(comm);
    throw;
  }
}

Status resume_steps(coll_comm& comm) {
  try {
    return deliver(comm, comm.steps->resume());
  } catch (...) {
    comm.steps.reset();
    end_hopeless_launches(comm);
    throw;
  }
}

Status form(coll_comm& comm, std::unique_ptr<Forming> forming,
            std::function<std::unique_ptr<coll_comm>()> take, coll_comm** made) {
  Forming* own = forming.get();
  return take_steps(comm, std::move(forming), [own, take = std::move(take), made] {
    if (own->member()) *made = take().release();
  });
}

}  // namespace coll

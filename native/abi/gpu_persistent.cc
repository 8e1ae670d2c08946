// SPDX-License-Identifier: Apache-2.0
// Persistent calls on GPUs, behind the C interface.
#include <memory>
#include <utility>
#include <vector>

#include "abi/convert.h"
#include "abi/gpu.h"
#include "collectives.h"
#include "communicator/gpu_owner.h"

struct coll_gpu_persistent {
  coll_comm* comm;
  std::int32_t device;
  std::shared_ptr<coll::GpuTeam> team;  // null: it goes through memory of the host
  std::vector<std::size_t> counts;      // of unequal parts, as the caller may change theirs
  coll::GpuPart part;
};

namespace coll {
namespace {

std::unique_ptr<coll_gpu_persistent> bound(coll_comm& comm, const Call& call, int32_t device) {
  auto made =
      std::make_unique<coll_gpu_persistent>(coll_gpu_persistent{.comm = &comm,
                                                                .device = device,
                                                                .team = gpu_team_of(comm, device),
                                                                .counts = {},
                                                                .part = {.call = call}});
  if (call.counts != nullptr) {
    const auto ranks = static_cast<std::size_t>(coll_ranks(&comm));
    made->counts.assign(call.counts,
                        call.counts + (call.kind == Kind::alltoall ? ranks * ranks : ranks));
    made->part.call.counts = made->counts.data();
  }
  made->part.call.words = {};
  return made;
}

}  // namespace
}  // namespace coll

using coll::guarded;
using coll::Status;

extern "C" {

coll_status coll_gpu_persistent_new(coll_comm* comm, const coll_call* call, int32_t device,
                                    coll_gpu_persistent** persistent) {
  return guarded([&] {
    if (comm == nullptr) throw coll::Error(Status::closed, "the communicator is closed");
    if (persistent == nullptr) {
      throw coll::Error(Status::invalid_argument, "no place for the persistent call");
    }
    const std::shared_ptr<coll_gpu_persistent> made =
        coll::bound(*comm, coll::to_call(call), device);
    if (made->team == nullptr) {  // as of arrays of the host, nothing reaches the other ranks
      coll::check_gpu_call(made->part.call, coll_rank(comm), coll_ranks(comm), device);
      *persistent = std::make_unique<coll_gpu_persistent>(std::move(*made)).release();
      return Status::ok;
    }
    auto steps = std::make_unique<coll::StepsOn<coll::GpuCall, coll::Communicator>>(
        coll::communicator(comm), made->team, made->part, coll::GpuWork::prepare);
    return coll::take_steps(*comm, std::move(steps), [made, persistent] {
      made->part.prepared = made->team->prepared();
      *persistent = std::make_unique<coll_gpu_persistent>(std::move(*made)).release();
    });
  });
}

coll_status coll_gpu_persistent_run(coll_gpu_persistent* persistent, void* stream) {
  return guarded([&] {
    if (persistent == nullptr) {
      throw coll::Error(Status::invalid_argument, "no persistent call is given");
    }
    coll::GpuPart part = persistent->part;
    part.stream = stream;
    return coll::run_on_gpu(*persistent->comm, persistent->device, persistent->team, part);
  });
}

coll_status coll_gpu_persistent_free(coll_gpu_persistent* persistent) {
  return guarded([&] {
    delete persistent;
    return Status::ok;
  });
}

}  // extern "C"

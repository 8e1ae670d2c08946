// SPDX-License-Identifier: Apache-2.0
// Persistent calls on GPUs, behind the C interface.
#include <memory>
#include <utility>
#include <vector>

#include "abi/convert.h"
#include "abi/gpu.h"
#include "collectives.h"

struct coll_gpu_persistent {
  coll_comm* comm;
  std::shared_ptr<coll::GpuTeam> team;
  std::vector<std::size_t> counts;  // of unequal parts, as the caller may change theirs
  coll::GpuPart part;
};

namespace coll {
namespace {

std::unique_ptr<coll_gpu_persistent> bound(coll_comm& comm, const Call& call, int32_t device) {
  auto made = std::make_unique<coll_gpu_persistent>(coll_gpu_persistent{
      .comm = &comm, .team = gpu_team_of(comm, device), .counts = {}, .part = {.call = call}});
  if (call.counts != nullptr) {
    const auto ranks = static_cast<std::size_t>(communicator(&comm).ranks());
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
    auto steps = coll::gpu_steps(*comm, made->team, made->part, coll::GpuWork::prepare);
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
    auto steps = coll::gpu_steps(*persistent->comm, persistent->team, part, coll::GpuWork::launch);
    return coll::take_steps(*persistent->comm, std::move(steps), [] {});
  });
}

coll_status coll_gpu_persistent_free(coll_gpu_persistent* persistent) {
  return guarded([&] {
    delete persistent;
    return Status::ok;
  });
}

}  // extern "C"

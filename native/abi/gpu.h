// SPDX-License-Identifier: Apache-2.0
// What calls and persistent calls on GPUs have in common behind the C interface.
#pragma once

#include <memory>
#include <utility>

#include "abi/handle.h"
#include "communicator/gpu_call.h"

namespace coll {

// The ranks of one process that share a GPU. Throws Error where the communicator's are not such, or
// there is no such GPU.
std::shared_ptr<GpuTeam> gpu_team_of(coll_comm& comm, int32_t device);

// Throws Error for what this rank can tell by itself.
inline std::unique_ptr<Steps> gpu_steps(coll_comm& comm, std::shared_ptr<GpuTeam> team,
                                        const GpuPart& part, GpuWork work) {
  return std::make_unique<StepsOn<GpuCall, Communicator>>(communicator(&comm), std::move(team),
                                                          part, work);
}

}  // namespace coll

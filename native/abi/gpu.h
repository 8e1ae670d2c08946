// SPDX-License-Identifier: Apache-2.0
// What calls and persistent calls on GPUs have in common behind the C interface.
#pragma once

#include <cstdint>
#include <memory>

#include "abi/handle.h"
#include "communicator/gpu_call.h"

namespace coll {

// The library of kernels, if there is such a GPU; else throws Error.
const cuda::Library& kernels_for(std::int32_t device);

// Whether one launch can serve all ranks: they are threads of one process, or there is one.
bool are_of_one_process(const coll_comm& comm) noexcept;

// Whether the stream is being captured into a graph.
bool captured(std::int32_t device, void* stream);

// The ranks of one process, which one launch serves; null where the communicator's are not such.
// Throws Error: there is no such GPU.
std::shared_ptr<GpuTeam> gpu_team_of(coll_comm& comm, std::int32_t device);

// Makes a rank's part of a call: by that team, or, without one, by launches of each rank where it
// has a GPU of its own, else through memory of the host. Throws Error for what this rank can tell
// by itself.
Status run_on_gpu(coll_comm& comm, std::int32_t device, const std::shared_ptr<GpuTeam>& team,
                  const GpuPart& part);
// Until a stream is done. Throws Error where a launch gave up.
void wait_on_gpu(coll_comm& comm, std::int32_t device, void* stream);
// Once a call has failed: where it has ended the communicator, what waits on GPUs is ended, too.
void end_hopeless_launches(coll_comm& comm) noexcept;
// Before a rank leaves: its launches are over, and it has nothing of others open. What waits for a
// rank that is gone is ended.
void leave_gpus(coll_comm& comm) noexcept;

}  // namespace coll

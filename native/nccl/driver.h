// SPDX-License-Identifier: Apache-2.0
// What this library must know of GPUs: whether there is any, whose memory an array is in, which one
// the thread works with.
#pragma once

#include <string>

#include "nccl/nccl.h"

namespace coll::nccl {

// Looks for a CUDA driver and for GPUs, once. Before that there is none.
void look_for_driver() noexcept;
// Whether an address may be one of a GPU, and a stream more than a number.
bool has_driver() noexcept;

// The GPU whose memory this is; -1: it is the host's. Throws Refusal where it is a GPU's, and there
// are no kernels for it.
int gpu_of(const void* data);

// The GPU of the calling thread, -1: none.
int current_device() noexcept;

// Whether there are kernels, and GPUs to run them on; else why not.
bool has_gpus() noexcept;
std::string why_no_gpus();

}  // namespace coll::nccl

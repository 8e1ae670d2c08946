// SPDX-License-Identifier: Apache-2.0
// Whether an address is memory of a GPU. The driver is opened at run time, where there is one.
#pragma once

#include "nccl/nccl.h"

namespace coll::nccl {

// Opens libcuda.so.1, once. From then on the next two cost a branch where there is none.
void look_for_driver() noexcept;
bool has_driver() noexcept;

// Memory of a GPU, which the host cannot read.
bool is_on_device(const void* data) noexcept;

// Throws Refusal for arrays in the memory of a GPU, and for streams that are not done at once.
void expect_host(const void* send, const void* recv, cudaStream_t stream);

// The GPU of the calling thread; -1: none.
int current_device() noexcept;

}  // namespace coll::nccl

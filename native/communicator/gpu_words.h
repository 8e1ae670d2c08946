// SPDX-License-Identifier: Apache-2.0
// What all ranks must say alike of a call of arrays on GPUs, as an error quotes it.
#pragma once

#include <cstdint>
#include <string>

#include "communicator/call.h"

namespace coll {

// What is done: the collective, or what it will need as a persistent call.
enum class GpuWork : std::uint8_t { launch, prepare };

// "allreduce of 8 float32, sum"
std::string gpu_words(const Call& call, int ranks, GpuWork work);

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Stores around the cache, as the folds use them.
#pragma once

#include <cstddef>

#include "kernels/instruction_set.h"
#include "kernels/kernels.h"

namespace coll::kernels {

// Below this many bytes for one destination streaming costs more than it saves.
inline constexpr std::size_t kStreamingPays = 4096;

// A copy whose whole cache lines are written around the cache; parts of lines are plain stores.
// What is read soon is asked for line by line.
void stream_bytes(void* destination, const void* source, std::size_t bytes, const Soon& soon = {},
                  InstructionSet set = best_instruction_set()) noexcept;

// Orders streamed stores before every later store (such as a flag).
void end_streaming() noexcept;

}  // namespace coll::kernels

// SPDX-License-Identifier: Apache-2.0
// Copies, as the folds use them.
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

// From so many bytes on copy_aligned() is no slower than memcpy().
inline constexpr std::size_t kAligningPays = 1024;

// A copy whose stores lie in a line each. The library's memcpy() leaves more than 2 KiB to `rep
// movsb`, which an array that does not begin with a line, as NumPy's (16 bytes behind a page),
// takes half the rate of: 256 KiB at 24 GB/s, where 41 are reached by lines; out of a far cache 32
// KiB in 4 us instead of 2 (EPYC, family 25, model 17, glibc 2.36).
void copy_aligned(void* destination, const void* source, std::size_t bytes,
                  InstructionSet set = best_instruction_set()) noexcept;

// Orders streamed stores before every later store (such as a flag).
void end_streaming() noexcept;

}  // namespace coll::kernels

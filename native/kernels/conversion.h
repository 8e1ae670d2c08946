// SPDX-License-Identifier: Apache-2.0
// float16, bfloat16 and float8 to float32 and back, a block at a time, by the best instructions of
// the CPU.
#pragma once

#include <cstddef>

#include "kernels/instruction_set.h"

namespace coll::kernels {

// Both forms of n elements; no alignment is asked for, and neither overlaps the other.
struct Conversion {
  void (*widen)(float* to, const void* from, std::size_t n) noexcept;
  void (*round)(void* to, const float* from, std::size_t n) noexcept;
};

// Format: of narrow_format.h. All sets give the same bits.
template <class Format>
Conversion conversion_for(InstructionSet set) noexcept;

}  // namespace coll::kernels

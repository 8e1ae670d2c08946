// SPDX-License-Identifier: Apache-2.0
// The elements of a vector that are largest in magnitude, as pairs of index and value.
#pragma once

#include <cstddef>

#include "kernels/dtype.h"
#include "kernels/instruction_set.h"
#include "kernels/pairs.h"

namespace coll {

// float32, float64, bfloat16 and float16: what the functions below take.
bool has_magnitudes(Dtype dtype) noexcept;

// Writes the k of n elements that are largest in magnitude, k <= n, by ascending index, with
// indices of 4 or 8 bytes. NaNs are the largest of all, before infinities, so none is lost before
// any number is; of elements of the same magnitude those with the lowest indices are taken. Zeros
// where there are not k others. Reads the vector once, and a sample of it; twice where the sample
// misleads. Throws bad_alloc.
void top_k(InstructionSet set, Dtype dtype, const void* x, std::size_t n, std::size_t k,
           std::size_t index_bytes, const PairsRoom& out);

// Counts the elements whose magnitude is `threshold` (at least 0) or more, and NaNs, and writes the
// first `room` of them by ascending index. Reads the vector once.
std::size_t select_above(InstructionSet set, Dtype dtype, const void* x, std::size_t n,
                         double threshold, std::size_t index_bytes, const PairsRoom& out,
                         std::size_t room) noexcept;

}  // namespace coll

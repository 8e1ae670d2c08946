// SPDX-License-Identifier: Apache-2.0
// Whole arrays to a wider dtype and back, for sums that are to be rounded once.
#pragma once

#include <cstddef>

#include "kernels/dtype.h"

namespace coll {

// Whether every number of `narrow` is one of `wide`, and both are floating point (or complex):
// float16, bfloat16 and float8 to float32 and float64, float32 to float64, complex64 to complex128.
bool widens(Dtype narrow, Dtype wide) noexcept;

// n elements of dtypes of which widens(narrow, wide). `wide_array` is aligned to its elements, the
// other one to nothing; they do not overlap.
void widen_array(Dtype wide, void* wide_array, Dtype narrow, const void* narrow_array,
                 std::size_t n) noexcept;
// Rounds once, to the nearest, ties to even: from float64 to float16 as well.
void round_array(Dtype narrow, void* narrow_array, Dtype wide, const void* wide_array,
                 std::size_t n) noexcept;

}  // namespace coll

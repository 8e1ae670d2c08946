// SPDX-License-Identifier: Apache-2.0
// NCCL's dtypes and operations in the words of the C interface, and what it has that those have
// not: a factor before a sum, and the average of integers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/dtype.h"
#include "nccl/nccl.h"

namespace coll::nccl {

inline constexpr std::array<Dtype, ncclNumTypes> kDtypeOf = {
    Dtype::int8,    Dtype::uint8,    Dtype::int32,         Dtype::uint32,
    Dtype::int64,   Dtype::uint64,   Dtype::float16,       Dtype::float32,
    Dtype::float64, Dtype::bfloat16, Dtype::float8_e4m3fn, Dtype::float8_e5m2};

constexpr bool is_dtype(int datatype) noexcept { return datatype >= 0 && datatype < ncclNumTypes; }

// By ncclRedOp_t, those that are built in.
inline constexpr std::array<Reduction, ncclNumOps> kReductionOf = {
    Reduction::sum, Reduction::prod, Reduction::max, Reduction::min, Reduction::avg};

// One element of any dtype, as it lies in memory.
using Element = std::array<std::byte, 8>;

// to[i] := factor * from[i], rounded once; integers wrap around. The arrays are the same or do not
// overlap, and are aligned to nothing.
void multiply(Dtype dtype, void* to, const void* from, std::size_t n,
              const Element& factor) noexcept;

// Integers: data[i] := data[i] / divisor, towards zero, as NCCL rounds its average.
void divide(Dtype dtype, void* data, std::size_t n, int divisor) noexcept;

}  // namespace coll::nccl

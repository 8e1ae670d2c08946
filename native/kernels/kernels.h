// SPDX-License-Identifier: Apache-2.0
// The arithmetic of collectives: k sources folded into m destinations, any dtype and operation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/dtype.h"

namespace coll {

// destinations[0 ... m) := epilogue(fold(sources[0 ... k))), element by element, n elements.
// A destination may equal a source (same address), never overlap one otherwise. No alignment is
// asked for. 1 <= k <= kMaxSources, 1 <= m; n may be 0.
inline constexpr std::uint32_t kMaxSources = 1024;

// Bytes [first, end) of places that this core reads soon, and that lie in a far cache or in memory.
struct Soon {
  const std::byte* const* places = nullptr;
  std::uint32_t count = 0;
  std::size_t first = 0, end = 0;

  Soon behind(std::size_t bytes) const noexcept {
    return first + bytes < end ? Soon{places, count, first + bytes, end} : Soon{};
  }
};

struct Fold {
  const void* const* sources;
  void* const* destinations;
  std::size_t n;
  std::uint32_t k;
  std::uint32_t m;
  // Shape of the summation tree. Left: ((s0+s1)+s2)+...; balanced: split at the largest power of
  // two below k, recursively, as recursive doubling does.
  bool balanced;
  // Bit i: destination i is not read soon on this core; write it around the cache where it pays:
  // seen by others in any order before kernels::end_streaming() (copy.h).
  std::uint32_t streaming;
  // The epilogue: results are divided by this once, before they are rounded: an average of equal
  // values is that value. 1: none, and always 1 where avg is not defined.
  double divisor;
  // Of a user's operation (user_op.h) only: the function, what its operands are, and whether it has
  // failed; then what the destinations hold is garbage.
  const struct UserOp* user = nullptr;
  Dtype dtype = Dtype::float32;
  bool* failed = nullptr;
  // Asked for while results go around the caches, which wait for memory as they do.
  Soon soon = {};
};

using FoldKernel = void (*)(const Fold&) noexcept;

// nullptr where the operation is not defined on the dtype:
//
//   dtypes               operations
//   floating point       sum prod min max avg, land lor lxor
//   integers             sum prod min max, land lor lxor, band bor bxor
//   bool                 as integers: sum, max, lor, bor are or; prod, min, land, band are and
//   complex              sum prod avg
//   pairs                minloc maxloc
//
// Floats narrower than float32 accumulate in float32 and round once, to nearest even; all their
// NaNs come out as one. min and max propagate NaN, and -0 is less than +0. Integers wrap around.
// Logical results are 0 or 1; a NaN is true. Of equal values minloc and maxloc take the smaller
// index, of NaNs too, and a NaN is taken before any number. One source with divisor 1 is copied bit
// by bit, whatever the operation. The bits are the same on every CPU, except which NaN a float32 or
// float64 is.
FoldKernel fold_kernel(Dtype dtype, Reduction op) noexcept;

// For what only moves data: folds of one source, of any dtype, pairs included.
FoldKernel copy_kernel(Dtype dtype) noexcept;

// One source to one destination; streaming: non-temporal stores where the CPU has them, and a fence
// behind them.
void copy_bytes(void* destination, const void* source, std::size_t bytes, bool streaming) noexcept;

}  // namespace coll

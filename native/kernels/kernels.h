// SPDX-License-Identifier: Apache-2.0
// The arithmetic of collectives: k sources folded into m destinations, any dtype and operation.
#pragma once

#include <cstddef>
#include <cstdint>

namespace coll {

// Numeric values are those of the C interface.
enum class Dtype : std::int32_t { float32 = 0, float64, int32, int64, uint8, bfloat16 };
enum class Reduction : std::int32_t { sum = 0, prod, min, max, avg };
inline constexpr int kDtypes = 6;
inline constexpr int kReductions = 5;

// Bytes of one element.
constexpr std::size_t size_of(Dtype dtype) noexcept {
  switch (dtype) {
    case Dtype::float64:
    case Dtype::int64:
      return 8;
    case Dtype::uint8:
      return 1;
    case Dtype::bfloat16:
      return 2;
    case Dtype::float32:
    case Dtype::int32:
      return 4;
  }
  return 0;
}

// destinations[0 ... m) := epilogue(fold(sources[0 ... k))), element by element, n elements.
// A destination may equal a source (same address), never overlap one otherwise. No alignment is
// asked for. 1 <= k <= kMaxSources, 1 <= m; n may be 0.
inline constexpr std::uint32_t kMaxSources = 1024;

struct Fold {
  const void* const* sources;
  void* const* destinations;
  std::size_t n;
  std::uint32_t k;
  std::uint32_t m;
  // Shape of the summation tree. Left: ((s0+s1)+s2)+...; balanced: split at the largest power of
  // two below k, recursively, as recursive doubling does.
  bool balanced;
  // Bit i: destination i is not read soon on this core; write it around the cache where it pays.
  std::uint32_t streaming;
  // The epilogue: results are divided by this once, before they are rounded: an average of equal
  // values is that value. 1: none, and always 1 for integers.
  double divisor;
  // Of a user's operation (user_op.h) only: the function, what its operands are, and whether it has
  // failed; then what the destinations hold is garbage.
  const struct UserOp* user = nullptr;
  Dtype dtype = Dtype::float32;
  bool* failed = nullptr;
};

using FoldKernel = void (*)(const Fold&) noexcept;

// nullptr where the operation is not defined on the dtype (avg of integers).
// bfloat16 accumulates in float32 and rounds once, to nearest even; its NaNs come out quiet. min
// and max propagate NaN. Integers wrap around. One source with divisor 1 is copied bit by bit.
// The bits are the same on every CPU, except which NaN a float NaN is.
FoldKernel fold_kernel(Dtype dtype, Reduction op) noexcept;

// One source to one destination; streaming: non-temporal stores where the CPU has them.
void copy_bytes(void* destination, const void* source, std::size_t bytes, bool streaming) noexcept;

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Moves and folds of no more than a cache line, where calling a kernel takes longer than its work.
#pragma once

#include <cstddef>
#include <cstring>

#include "kernels/dtype.h"

namespace coll {

inline constexpr std::size_t kFewBytes = 64;

// to := a op b, n elements of kFewBytes in all at most, at any address; `to` may be a or b. The
// bits are those of the dtype's kernel.
using FewKernel = void (*)(void* to, const void* a, const void* b, std::size_t n) noexcept;

// nullptr: there is none, and the kernel makes it.
FewKernel few_kernel(Dtype dtype, Reduction op) noexcept;

template <std::size_t kBytes>
[[gnu::always_inline]] inline void copy_ends(std::byte* to, const std::byte* from,
                                             std::size_t n) noexcept {
  std::byte first[kBytes], last[kBytes];
  std::memcpy(first, from, kBytes);
  std::memcpy(last, from + n - kBytes, kBytes);
  std::memcpy(to, first, kBytes);
  std::memcpy(to + n - kBytes, last, kBytes);
}

// Up to kFewBytes bytes, by two pieces that may overlap.
inline void copy_few(std::byte* to, const std::byte* from, std::size_t n) noexcept {
  if (n >= 32) return copy_ends<32>(to, from, n);
  if (n >= 16) return copy_ends<16>(to, from, n);
  if (n >= 8) return copy_ends<8>(to, from, n);
  if (n >= 4) return copy_ends<4>(to, from, n);
  for (std::size_t i = 0; i < n; ++i) to[i] = from[i];
}

}  // namespace coll

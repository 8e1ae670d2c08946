// SPDX-License-Identifier: Apache-2.0
// The fold of k sources into m destinations, block by block: compiled once, over the loops of a
// dtype, an operation and an instruction set (block_loops.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/copy.h"
#include "kernels/kernels.h"

namespace coll::kernels {

// Bytes of partial results that stay in the L1 cache while the sources pass by.
inline constexpr std::size_t kBlockBytes = 4096;

// What is done with the cells of a block, n of them. Cells are elements as they lie in memory, at
// any address; values are what they are folded as, in blocks of kBlockBytes. nullptr as `load`:
// cells are values, and so there is no fold_in, join and store. `to` may be a source, never overlap
// one otherwise.
struct BlockLoops {
  std::size_t cell_bytes;
  std::size_t value_bytes;
  // to := a op b, of cells to values.
  void (*combine)(const void* element, void* to, const void* a, const void* b,
                  std::size_t n) noexcept;
  void (*load)(const void* element, void* to, const void* a, std::size_t n) noexcept;
  // to := to op a, of cells to values.
  void (*fold_in)(const void* element, void* to, const void* a, std::size_t n) noexcept;
  // to := to op from, of values.
  void (*join)(void* to, const void* from, std::size_t n) noexcept;
  // nullptr where there is no average.
  void (*divide)(void* values, double divisor, std::size_t n) noexcept;
  // The one rounding.
  void (*store)(const void* element, void* to, const void* values, std::size_t n) noexcept;
};

// Any fold. `element` is what the loops are told of the dtype beyond their types.
void fold_blockwise(const Fold& fold, const BlockLoops& loops, const void* element) noexcept;

template <class Value>
[[gnu::always_inline]] inline bool divided(const Fold& fold) noexcept {
  return std::is_floating_point_v<Value> && fold.divisor != 1;
}

// Whether the results of a fold, of so many bytes each, are written around the cache.
[[gnu::always_inline]] inline bool streams(const Fold& fold, std::size_t bytes) noexcept {
  return fold.streaming != 0 && bytes >= kStreamingPays;
}

[[gnu::always_inline]] inline bool streamed(const Fold& fold, std::uint32_t j) noexcept {
  return j < 32 && (fold.streaming >> j & 1) != 0;
}

// A fold of one source, which stays as it is.
[[gnu::always_inline]] inline void copy_source(const Fold& fold, std::size_t bytes) noexcept {
  for (std::uint32_t j = 0; j < fold.m; ++j) {
    copy_bytes(fold.destinations[j], fold.sources[0], bytes, streamed(fold, j));
  }
}

}  // namespace coll::kernels

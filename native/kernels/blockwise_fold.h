// SPDX-License-Identifier: Apache-2.0
// The fold of k sources into m destinations, block by block, written once for all dtypes,
// operations and CPUs. Everything here is always inlined: into functions that fix the instruction
// set (versions.h).
//
// Cells say how elements lie in memory:
//   Value                        what is folded
//   kStoredAsFolded              whether cells are values
//   bytes(n)                     of n cells
//   load(to, a, n)               to := a
//   load_pair<Op>(to, a, b, n)   to := a op b
//   fold_in<Op>(to, a, n)        to := to op a
//   store(to, values, n)         the one rounding
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/copy.h"
#include "kernels/kernels.h"
#include "kernels/lines.h"

namespace coll::kernels {

// body(0) ... body(n-1), in vectors: a destination overlaps a source only at the same index.
template <class Body>
[[gnu::always_inline]] inline void for_each_element(std::size_t n, Body body) noexcept {
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (std::size_t i = 0; i < n; ++i) body(i);
}

template <class Value>
[[gnu::always_inline]] inline bool divided(const Fold& fold) noexcept {
  return std::is_floating_point_v<Value> && fold.divisor != 1;
}

[[gnu::always_inline]] inline bool streamed(const Fold& fold, std::uint32_t j) noexcept {
  return j < 32 && (fold.streaming >> j & 1) != 0;
}

// A fold of one source, which stays as it is.
[[gnu::always_inline]] inline void copy_source(const Fold& fold, std::size_t bytes) noexcept {
  for (std::uint32_t j = 0; j < fold.m; ++j) {
    if (streamed(fold, j) && bytes >= kStreamingPays && fold.destinations[j] != fold.sources[0]) {
      stream_bytes(fold.destinations[j], fold.sources[0], bytes, fold.soon);
    } else {
      copy_bytes(fold.destinations[j], fold.sources[0], bytes, false);
    }
  }
}

template <class Value>
inline constexpr std::size_t kBlock = 4096 / sizeof(Value);
template <class Value>
using Block = std::array<Value, kBlock<Value>>;

// to := to op from.
template <class Op, class Value>
[[gnu::always_inline]] inline void join(Value* to, const Value* from, std::size_t n) noexcept {
  for_each_element(
      n, [=](std::size_t i) __attribute__((always_inline)) { to[i] = Op::apply(to[i], from[i]); });
}

template <class Cells, class Op>
class BlockwiseFold {
 public:
  // Any fold. The partial results of a block stay in the L1 cache while the sources pass by.
  [[gnu::always_inline]] static void run(const Fold& fold, const Cells& cells) noexcept {
    alignas(64) std::array<Values, kLevels> partials;
    const bool around_cache = streams(fold, cells);
    const std::size_t cell = cells.bytes(1);
    const std::size_t whole =
        around_cache ? std::min(kStreamedBlockBytes / cell, kBlock<Value>) : kBlock<Value>;
    std::size_t n = whole - cells_into_line(fold, cell);
    for (std::size_t first = 0; first < fold.n; first += n, n = whole) {
      n = std::min(n, fold.n - first);
      if (fold.balanced) {
        fold_balanced(fold, cells, first, n, partials);
      } else {
        fold_left(fold, cells, first, n, partials[0].data());
      }
      divide(fold, n, partials[0].data());
      write(fold, cells, first, n, partials[0].data(), around_cache);
    }
  }

  // Whether the results of a fold are written around the cache.
  [[gnu::always_inline]] static bool streams(const Fold& fold, const Cells& cells) noexcept {
    return fold.streaming != 0 && cells.bytes(fold.n) >= kStreamingPays;
  }

 private:
  using Value = typename Cells::Value;
  using Values = Block<Value>;

  // A balanced fold holds one partial result for each binary digit of the number of pairs so far.
  static constexpr std::size_t kLevels = std::bit_width(kMaxSources / 2);

  [[gnu::always_inline]] static const std::byte* source(const Fold& fold, const Cells& cells,
                                                        std::size_t j, std::size_t first) noexcept {
    return static_cast<const std::byte*>(fold.sources[j]) + cells.bytes(first);
  }

  [[gnu::always_inline]] static void fold_left(const Fold& fold, const Cells& cells,
                                               std::size_t first, std::size_t n,
                                               Value* to) noexcept {
    if (fold.k == 1) return cells.load(to, source(fold, cells, 0, first), n);
    cells.template load_pair<Op>(to, source(fold, cells, 0, first), source(fold, cells, 1, first),
                                 n);
    for (std::size_t j = 2; j < fold.k; ++j) {
      cells.template fold_in<Op>(to, source(fold, cells, j, first), n);
      // Or else g++ joins the loops of two sources into one that it then does not vectorise.
      asm volatile("" ::: "memory");
    }
  }

  // Pairs are leaves of the tree; two partial results of equal size are joined as soon as both
  // are there, as a binary counter carries, and the unequal ones that are left from the last on.
  // That is the tree split at the largest power of two below k.
  [[gnu::always_inline]] static void fold_balanced(const Fold& fold, const Cells& cells,
                                                   std::size_t first, std::size_t n,
                                                   std::array<Values, kLevels>& partials) noexcept {
    std::size_t depth = 0;
    for (std::size_t j = 0; j < fold.k; j += 2) {
      const std::byte* a = source(fold, cells, j, first);
      const bool last = j + 2 >= fold.k;
      if (j + 1 < fold.k) {
        const std::byte* b = source(fold, cells, j + 1, first);
        cells.template load_pair<Op>(partials[depth++].data(), a, b, n);
      } else {
        cells.load(partials[depth++].data(), a, n);
      }
      auto joins = last ? depth - 1 : static_cast<std::size_t>(std::countr_zero(j / 2 + 1));
      for (; joins > 0; --joins, --depth) {
        join<Op>(partials[depth - 2].data(), partials[depth - 1].data(), n);
      }
    }
  }

  [[gnu::always_inline]] static void divide(const Fold& fold, std::size_t n,
                                            Value* values) noexcept {
    if constexpr (std::is_floating_point_v<Value>) {
      if (!divided<Value>(fold)) return;
      const auto divisor = static_cast<Value>(fold.divisor);
      for_each_element(n, [=](std::size_t i)
                              __attribute__((always_inline)) { values[i] = values[i] / divisor; });
    }
  }

  // The one rounding, and the way to the destinations.
  [[gnu::always_inline]] static void write(const Fold& fold, const Cells& cells, std::size_t first,
                                           std::size_t n, const Value* values,
                                           bool around_cache) noexcept {
    if (fold.m == 1 && !around_cache) {
      cells.store(static_cast<std::byte*>(fold.destinations[0]) + cells.bytes(first), values, n);
    } else if constexpr (Cells::kStoredAsFolded) {
      copy_block(fold, cells, first, n, values, around_cache);
    } else {
      alignas(64) std::array<std::byte, sizeof(Values)> rounded;  // cells are no wider than values
      cells.store(rounded.data(), values, n);
      copy_block(fold, cells, first, n, rounded.data(), around_cache);
    }
  }

  [[gnu::always_inline]] static void copy_block(const Fold& fold, const Cells& cells,
                                                std::size_t first, std::size_t n, const void* from,
                                                bool around_cache) noexcept {
    for (std::uint32_t j = 0; j < fold.m; ++j) {
      std::byte* to = static_cast<std::byte*>(fold.destinations[j]) + cells.bytes(first);
      if (around_cache && streamed(fold, j)) {
        stream_bytes(to, from, cells.bytes(n), fold.soon.behind(cells.bytes(first)));
      } else {
        copy_bytes(to, from, cells.bytes(n), false);
      }
    }
  }
};

}  // namespace coll::kernels

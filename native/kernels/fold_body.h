// SPDX-License-Identifier: Apache-2.0
// The fold of k sources into m destinations, written once for all dtypes, operations and CPUs.
// Everything here is always inlined: into the functions of fold.cc, which fix the instruction set.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/copy.h"
#include "kernels/element.h"

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

template <class Element, class Op>
class FoldBody {
 public:
  // One or two sources, folded without blocks: the commonest folds, and the ones where a few
  // nanoseconds count. False: not one of them, nothing was done.
  [[gnu::always_inline]] static bool direct(const Fold& fold) noexcept {
    if (fold.k == 2 && fold.m <= 2 && !streams(fold)) {
      divided(fold) ? two_sources<true>(fold) : two_sources<false>(fold);
      return true;
    }
    if (fold.k != 1 || divided(fold)) return false;
    for (std::uint32_t j = 0; j < fold.m; ++j) {
      copy_bytes(fold.destinations[j], fold.sources[0], fold.n * sizeof(Memory), streamed(fold, j));
    }
    return true;
  }

  // Any fold. The partial results of a block stay in the L1 cache while the sources pass by.
  [[gnu::always_inline]] static void blockwise(const Fold& fold) noexcept {
    alignas(64) std::array<Block, kLevels> partials;
    const bool around_cache = streams(fold);
    std::size_t n = around_cache ? kBlock - cells_into_line(fold) : kBlock;
    for (std::size_t first = 0; first < fold.n; first += n, n = kBlock) {
      n = std::min(n, fold.n - first);
      if (fold.balanced) {
        fold_balanced(fold, first, n, partials);
      } else {
        fold_left(fold, first, n, partials[0]);
      }
      write(fold, first, n, partials[0], around_cache);
    }
    if (around_cache) end_streaming();
  }

 private:
  using Memory = typename Element::Memory;
  using Value = typename Element::Value;
  using Cell = Stored<Memory>;

  static constexpr std::size_t kBlock = 4096 / sizeof(Value);
  using Block = std::array<Value, kBlock>;
  // A balanced fold holds one partial result for each binary digit of the number of pairs so far.
  static constexpr std::size_t kLevels = std::bit_width(kMaxSources / 2);

  [[gnu::always_inline]] static const Cell* source(const Fold& fold, std::size_t j) noexcept {
    return static_cast<const Cell*>(fold.sources[j]);
  }
  [[gnu::always_inline]] static Cell* destination(const Fold& fold, std::size_t j) noexcept {
    return static_cast<Cell*>(fold.destinations[j]);
  }

  [[gnu::always_inline]] static bool divided(const Fold& fold) noexcept {
    return std::is_floating_point_v<Value> && fold.divisor != 1;
  }
  [[gnu::always_inline]] static bool streamed(const Fold& fold, std::uint32_t j) noexcept {
    return j < 32 && (fold.streaming >> j & 1) != 0;
  }
  [[gnu::always_inline]] static bool streams(const Fold& fold) noexcept {
    return fold.streaming != 0 && fold.n * sizeof(Memory) >= kStreamingPays;
  }
  // Cells of the first streamed destination in front of its first whole cache line, counted from
  // the line's start: blocks that end where lines end write no line in two parts.
  [[gnu::always_inline]] static std::size_t cells_into_line(const Fold& fold) noexcept {
    const auto j = static_cast<std::size_t>(std::countr_zero(fold.streaming));
    if (j >= fold.m) return 0;
    return reinterpret_cast<std::uintptr_t>(fold.destinations[j]) % 64 / sizeof(Memory);
  }

  template <bool kDivided>
  [[gnu::always_inline]] static void two_sources(const Fold& fold) noexcept {
    const Cell *a = source(fold, 0), *b = source(fold, 1);
    const auto divisor = static_cast<Value>(fold.divisor);
    const auto result = [=](std::size_t i) __attribute__((always_inline)) {
      Value value = Op::apply(Element::load(a[i].value), Element::load(b[i].value));
      if constexpr (kDivided) value = value / divisor;
      return Element::round(value);
    };
    Cell* to = destination(fold, 0);
    if (fold.m == 1) {
      for_each_element(
          fold.n, [=](std::size_t i) __attribute__((always_inline)) { to[i].value = result(i); });
      return;
    }
    Cell* also = destination(fold, 1);
    for_each_element(fold.n, [=](std::size_t i) __attribute__((always_inline)) {
      const Memory both = result(i);
      to[i].value = both;
      also[i].value = both;
    });
  }

  // block := a, and block := a op b, for the n cells from a, b on.
  [[gnu::always_inline]] static void load_one(Block& block, const Cell* a, std::size_t n) noexcept {
    Value* to = block.data();
    for_each_element(n, [=](std::size_t i)
                            __attribute__((always_inline)) { to[i] = Element::load(a[i].value); });
  }
  [[gnu::always_inline]] static void load_pair(Block& block, const Cell* a, const Cell* b,
                                               std::size_t n) noexcept {
    Value* to = block.data();
    for_each_element(n, [=](std::size_t i) __attribute__((always_inline)) {
      to[i] = Op::apply(Element::load(a[i].value), Element::load(b[i].value));
    });
  }

  [[gnu::always_inline]] static void fold_left(const Fold& fold, std::size_t first, std::size_t n,
                                               Block& block) noexcept {
    if (fold.k == 1) return load_one(block, source(fold, 0) + first, n);
    load_pair(block, source(fold, 0) + first, source(fold, 1) + first, n);
    Value* to = block.data();
    for (std::size_t j = 2; j < fold.k; ++j) {
      const Cell* next = source(fold, j) + first;
      for_each_element(n, [=](std::size_t i) __attribute__((always_inline)) {
        to[i] = Op::apply(to[i], Element::load(next[i].value));
      });
      // Or else g++ joins the loops of two sources into one that it then does not vectorise.
      asm volatile("" ::: "memory");
    }
  }

  // Pairs are leaves of the tree; two partial results of equal size are joined as soon as both
  // are there, as a binary counter carries, and the unequal ones that are left from the last on.
  // That is the tree split at the largest power of two below k.
  [[gnu::always_inline]] static void fold_balanced(const Fold& fold, std::size_t first,
                                                   std::size_t n,
                                                   std::array<Block, kLevels>& partials) noexcept {
    std::size_t depth = 0;
    for (std::size_t j = 0; j < fold.k; j += 2) {
      const Cell* a = source(fold, j) + first;
      const bool last = j + 2 >= fold.k;
      if (j + 1 < fold.k) {
        load_pair(partials[depth++], a, source(fold, j + 1) + first, n);
      } else {
        load_one(partials[depth++], a, n);
      }
      auto joins = last ? depth - 1 : static_cast<std::size_t>(std::countr_zero(j / 2 + 1));
      for (; joins > 0; --joins, --depth) {
        Value *to = partials[depth - 2].data(), *from = partials[depth - 1].data();
        for_each_element(n, [=](std::size_t i) __attribute__((always_inline)) {
          to[i] = Op::apply(to[i], from[i]);
        });
      }
    }
  }

  // The epilogue, the one rounding, and the way to the destinations.
  [[gnu::always_inline]] static void write(const Fold& fold, std::size_t first, std::size_t n,
                                           Block& block, bool around_cache) noexcept {
    Value* values = block.data();
    if (divided(fold)) {
      const auto divisor = static_cast<Value>(fold.divisor);
      for_each_element(n, [=](std::size_t i)
                              __attribute__((always_inline)) { values[i] = values[i] / divisor; });
    }
    if (fold.m == 1 && !around_cache) {
      round_block(destination(fold, 0) + first, values, n);
    } else if constexpr (std::is_same_v<Value, Memory>) {
      copy_block(fold, first, n, values, around_cache);
    } else {
      alignas(64) std::array<Memory, kBlock> rounded;
      round_block(reinterpret_cast<Cell*>(rounded.data()), values, n);
      copy_block(fold, first, n, rounded.data(), around_cache);
    }
  }

  [[gnu::always_inline]] static void round_block(Cell* to, const Value* values,
                                                 std::size_t n) noexcept {
    for_each_element(n, [=](std::size_t i) __attribute__((always_inline)) {
      to[i].value = Element::round(values[i]);
    });
  }

  [[gnu::always_inline]] static void copy_block(const Fold& fold, std::size_t first, std::size_t n,
                                                const Memory* from, bool around_cache) noexcept {
    for (std::uint32_t j = 0; j < fold.m; ++j) {
      Cell* to = destination(fold, j) + first;
      if (around_cache && streamed(fold, j)) {
        stream_bytes(to, from, n * sizeof(Memory));
      } else {
        std::memcpy(to, from, n * sizeof(Memory));
      }
    }
  }
};

}  // namespace coll::kernels

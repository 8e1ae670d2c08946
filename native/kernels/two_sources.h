// SPDX-License-Identifier: Apache-2.0
// The fold of one source or two, without blocks, in loops that the compiler vectorises for the
// instruction set of the function that they are inlined into.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/block_loops.h"
#include "kernels/blockwise_fold.h"
#include "kernels/element.h"

namespace coll::kernels {

// How many cells of a long destination lie in front of its first whole cache line; of a short one,
// all. A store that lies in two pages lets no later load begin before it is done, and no store of
// whole lines does. Far cores paid for the first line of each page in full: 64 KiB took 11 us
// instead of 5 where an array began in the last line of a page.
template <class Cell>
[[gnu::always_inline]] inline std::size_t cells_before_line(const Cell* to,
                                                            std::size_t n) noexcept {
  constexpr std::size_t kLine = 64, kLong = 4096;
  if (n * sizeof(Cell) < kLong) return n;
  return -reinterpret_cast<std::uintptr_t>(to) % kLine / sizeof(Cell);
}

template <bool kDivided, class Op, class Element>
[[gnu::always_inline]] inline void fold_two_sources(const Fold& fold, Element element) noexcept {
  using Cell = Stored<typename Element::Memory>;
  using Value = typename Element::Value;
  const auto *a = static_cast<const Cell*>(fold.sources[0]),
             *b = static_cast<const Cell*>(fold.sources[1]);
  const auto result = [=](std::size_t i) __attribute__((always_inline)) {
    Value value = Op::apply(element.load(a[i].value), element.load(b[i].value));
    if constexpr (kDivided) value = value / static_cast<Value>(fold.divisor);
    return element.round(value);
  };
  auto* to = static_cast<Cell*>(fold.destinations[0]);
  auto* also = static_cast<Cell*>(fold.destinations[fold.m - 1]);
  std::size_t end = cells_before_line(to, fold.n);
  for (std::size_t first = 0; first < fold.n; first = std::exchange(end, fold.n)) {
    if (fold.m == 1) {
      for_each_element(end - first, [=](std::size_t i) __attribute__((always_inline)) {
        to[first + i].value = result(first + i);
      });
    } else {
      for_each_element(end - first, [=](std::size_t i) __attribute__((always_inline)) {
        const auto both = result(first + i);
        to[first + i].value = both;
        also[first + i].value = both;
      });
    }
  }
}

// One or two sources, folded without blocks: the commonest folds, and the ones where a few
// nanoseconds count. False: not one of them, nothing was done.
template <class Op, class Element>
[[gnu::always_inline]] inline bool folded_directly(const Fold& fold, Element element) noexcept {
  using Value = typename Element::Value;
  const std::size_t bytes = fold.n * sizeof(typename Element::Memory);
  const bool divide = divided<Value>(fold);
  if (fold.k == 2 && fold.m <= 2 && !streams(fold, bytes)) {
    if constexpr (std::is_floating_point_v<Value>) {
      if (divide) fold_two_sources<true, Op>(fold, element);
    }
    if (!divide) fold_two_sources<false, Op>(fold, element);
    return true;
  }
  if (fold.k != 1 || divide) return false;
  copy_source(fold, bytes);
  return true;
}

}  // namespace coll::kernels

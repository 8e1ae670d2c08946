// SPDX-License-Identifier: Apache-2.0
// Cells that are loaded, folded and rounded one by one, in loops that the compiler vectorises; and
// the fold of two sources without blocks. Always inlined, as blockwise_fold.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/blockwise_fold.h"
#include "kernels/element.h"

namespace coll::kernels {

template <class Element>
struct Elementwise {
  using Memory = typename Element::Memory;
  using Value = typename Element::Value;
  using Cell = Stored<Memory>;
  static constexpr bool kStoredAsFolded = kernels::kStoredAsFolded<Element>;

  Element element;

  [[gnu::always_inline]] static constexpr std::size_t bytes(std::size_t n) noexcept {
    return n * sizeof(Memory);
  }
  [[gnu::always_inline]] static const Cell* cells(const void* a) noexcept {
    return static_cast<const Cell*>(a);
  }

  [[gnu::always_inline]] void load(Value* to, const void* from, std::size_t n) const noexcept {
    for_each_element(n, [to, e = element, a = cells(from)](std::size_t i)
                            __attribute__((always_inline)) { to[i] = e.load(a[i].value); });
  }
  template <class Op>
  [[gnu::always_inline]] void load_pair(Value* to, const void* first, const void* second,
                                        std::size_t n) const noexcept {
    for_each_element(n, [to, e = element, a = cells(first), b = cells(second)](std::size_t i)
                            __attribute__((always_inline)) {
                              to[i] = Op::apply(e.load(a[i].value), e.load(b[i].value));
                            });
  }
  template <class Op>
  [[gnu::always_inline]] void fold_in(Value* to, const void* next, std::size_t n) const noexcept {
    for_each_element(n, [to, e = element, a = cells(next)](std::size_t i) __attribute__((
                            always_inline)) { to[i] = Op::apply(to[i], e.load(a[i].value)); });
  }
  [[gnu::always_inline]] void store(void* to, const Value* values, std::size_t n) const noexcept {
    auto* cell = static_cast<Cell*>(to);
    for_each_element(n, [cell, values, e = element](std::size_t i)
                            __attribute__((always_inline)) { cell[i].value = e.round(values[i]); });
  }
};

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
  using Cell = typename Elementwise<Element>::Cell;
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
  using Cells = Elementwise<Element>;
  using Value = typename Element::Value;
  const bool divide = divided<Value>(fold);
  if (fold.k == 2 && fold.m <= 2 && !BlockwiseFold<Cells, Op>::streams(fold, Cells{element})) {
    if constexpr (std::is_floating_point_v<Value>) {
      if (divide) fold_two_sources<true, Op>(fold, element);
    }
    if (!divide) fold_two_sources<false, Op>(fold, element);
    return true;
  }
  if (fold.k != 1 || divide) return false;
  copy_source(fold, Cells::bytes(fold.n));
  return true;
}

}  // namespace coll::kernels

// SPDX-License-Identifier: Apache-2.0
// Cells that are loaded, folded and rounded one by one, in loops that the compiler vectorises; and
// the fold of two sources without blocks. Always inlined, as blockwise_fold.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/blockwise_fold.h"
#include "kernels/element.h"
#include "kernels/lines.h"
#include "kernels/operation.h"

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

// Two sources and one or two destinations.
template <bool kDivided, class Op, class Element>
struct TwoSources {
  using Cell = typename Elementwise<Element>::Cell;
  using Value = typename Element::Value;

  const Cell *a, *b;
  Cell *to, *also;
  Element element;
  double divisor;
  bool twice;

  // `one`: the destination whose lines count.
  [[gnu::always_inline]] TwoSources(const Fold& fold, Element element, std::uint32_t one) noexcept
      : a(static_cast<const Cell*>(fold.sources[0])),
        b(static_cast<const Cell*>(fold.sources[1])),
        to(static_cast<Cell*>(fold.destinations[one])),
        also(static_cast<Cell*>(fold.destinations[fold.m - 1 - one])),
        element(element),
        divisor(fold.divisor),
        twice(fold.m == 2) {}

  [[gnu::always_inline]] auto result(std::size_t i) const noexcept {
    Value value = Op::apply(element.load(a[i].value), element.load(b[i].value));
    if constexpr (kDivided) value = value / static_cast<Value>(divisor);
    return element.round(value);
  }

  [[gnu::always_inline]] void fold_range(std::size_t first, std::size_t end) const noexcept {
    if (!twice) {
      for_each_element(end - first,
                       [first, self = *this](std::size_t i) __attribute__((always_inline)) {
                         self.to[first + i].value = self.result(first + i);
                       });
    } else {
      for_each_element(end - first,
                       [first, self = *this](std::size_t i) __attribute__((always_inline)) {
                         const auto both = self.result(first + i);
                         self.to[first + i].value = both;
                         self.also[first + i].value = both;
                       });
    }
  }

  // Whole lines of `to` around the caches: each goes out while the next ones come in.
  template <std::size_t kPiece>
  [[gnu::always_inline]] void stream_lines(std::size_t first, std::size_t end,
                                           Soon soon) const noexcept {
    constexpr std::size_t kCells = kLineBytes / sizeof(Cell);
    for (; first < end; first += kCells, soon = soon.behind(kLineBytes)) {
      alignas(kLineBytes) std::array<Cell, kCells> line;
      ask_for(soon, kLineBytes);
      for_each_element(
          kCells, [first, cells = line.data(), self = *this](std::size_t i)
                      __attribute__((always_inline)) { cells[i].value = self.result(first + i); });
      stream_line<kPiece>(to + first, line.data());
      if (twice) std::memcpy(also + first, line.data(), kLineBytes);
    }
  }
};

template <bool kDivided, class Op, class Element>
[[gnu::always_inline]] inline void fold_two_sources(const Fold& fold, Element element) noexcept {
  const TwoSources<kDivided, Op, Element> two(fold, element, 0);
  const std::size_t head = cells_before_line(two.to, fold.n, sizeof(*two.to));
  std::size_t end = head;
  for (std::size_t first = 0; first < fold.n; first = std::exchange(end, fold.n)) {
    two.fold_range(first, end);
  }
}

// Of one or two destinations one goes around the caches, to the peers: the commonest fold of far
// cores.
template <std::size_t kPiece, class Op, class Element>
[[gnu::always_inline]] inline void stream_two_sources(const Fold& fold, std::uint32_t one,
                                                      Element element) noexcept {
  const TwoSources<false, Op, Element> two(fold, element, one);
  constexpr std::size_t kCells = kLineBytes / sizeof(*two.to);
  const std::size_t head = cells_to_line(two.to, sizeof(*two.to));
  const std::size_t tail = fold.n - (fold.n - head) % kCells;
  two.fold_range(0, head);
  two.template stream_lines<kPiece>(head, tail, fold.soon);
  two.fold_range(tail, fold.n);
}

template <class Op, class Element>
inline constexpr bool kStreamsLines =
    std::is_same_v<Op, Sum> && kLineBytes % sizeof(typename Element::Memory) == 0 &&
    !kThreadSanitizer;

// One or two sources, folded without blocks: the commonest folds, and the ones where a few
// nanoseconds count. False: not one of them, nothing was done.
template <std::size_t kPiece, class Op, class Element>
[[gnu::always_inline]] inline bool folded_directly(const Fold& fold, Element element) noexcept {
  using Cells = Elementwise<Element>;
  using Value = typename Element::Value;
  const bool divide = divided<Value>(fold);
  if (fold.k == 2 && fold.m <= 2) {
    if (BlockwiseFold<Cells, Op>::streams(fold, Cells{element})) {
      if constexpr (kStreamsLines<Op, Element>) {
        const int one = divide ? -1 : only_streamed(fold, Cells::bytes(1));
        if (one >= 0)
          stream_two_sources<kPiece, Op>(fold, static_cast<std::uint32_t>(one), element);
        return one >= 0;
      }
      return false;
    }
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

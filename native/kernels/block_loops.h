// SPDX-License-Identifier: Apache-2.0
// The loops over the cells of a block, in bodies that the compiler vectorises for the instruction
// set of the function that they are inlined into (versions.h).
#pragma once

#include <cstddef>
#include <type_traits>

#include "kernels/blockwise_fold.h"
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

// Of one element: what a BlockLoops points to.
template <class Element, class Op>
struct LoopBodies {
  using Value = typename Element::Value;
  using Cell = Stored<typename Element::Memory>;

  [[gnu::always_inline]] static Element element_at(const void* element) noexcept {
    if constexpr (std::is_empty_v<Element>) {
      return {};
    } else {
      return *static_cast<const Element*>(element);
    }
  }

  [[gnu::always_inline]] static void combine(const void* element, void* to, const void* first,
                                             const void* second, std::size_t n) noexcept {
    const auto *a = static_cast<const Cell*>(first), *b = static_cast<const Cell*>(second);
    for_each_element(n, [=, e = element_at(element), v = static_cast<Value*>(to)](std::size_t i)
                            __attribute__((always_inline)) {
                              v[i] = Op::apply(e.load(a[i].value), e.load(b[i].value));
                            });
  }
  [[gnu::always_inline]] static void load(const void* element, void* to, const void* from,
                                          std::size_t n) noexcept {
    for_each_element(n, [e = element_at(element), v = static_cast<Value*>(to),
                         a = static_cast<const Cell*>(from)](std::size_t i)
                            __attribute__((always_inline)) { v[i] = e.load(a[i].value); });
  }
  [[gnu::always_inline]] static void fold_in(const void* element, void* to, const void* next,
                                             std::size_t n) noexcept {
    for_each_element(
        n, [e = element_at(element), v = static_cast<Value*>(to),
            a = static_cast<const Cell*>(next)](std::size_t i)
               __attribute__((always_inline)) { v[i] = Op::apply(v[i], e.load(a[i].value)); });
  }
  [[gnu::always_inline]] static void join(void* to, const void* from, std::size_t n) noexcept {
    for_each_element(
        n, [v = static_cast<Value*>(to), a = static_cast<const Value*>(from)](std::size_t i)
               __attribute__((always_inline)) { v[i] = Op::apply(v[i], a[i]); });
  }
  [[gnu::always_inline]] static void divide(void* values, double divisor, std::size_t n) noexcept {
    for_each_element(n, [v = static_cast<Value*>(values), by = static_cast<Value>(divisor)](
                            std::size_t i) __attribute__((always_inline)) { v[i] = v[i] / by; });
  }
  [[gnu::always_inline]] static void store(const void* element, void* to, const void* values,
                                           std::size_t n) noexcept {
    for_each_element(n, [e = element_at(element), v = static_cast<const Value*>(values),
                         cell = static_cast<Cell*>(to)](std::size_t i)
                            __attribute__((always_inline)) { cell[i].value = e.round(v[i]); });
  }
};

// The loops of `Compiled`, which has those bodies as functions for one instruction set.
template <class Element, class Op, class Compiled>
consteval BlockLoops loops_of() noexcept {
  using Value = typename Element::Value;
  BlockLoops loops{};
  loops.cell_bytes = sizeof(typename Element::Memory);
  loops.value_bytes = sizeof(Value);
  loops.combine = Compiled::combine;
  if constexpr (std::is_floating_point_v<Value>) loops.divide = Compiled::divide;
  if constexpr (!kStoredAsFolded<Element>) {
    loops.load = Compiled::load;
    loops.fold_in = Compiled::fold_in;
    loops.join = Compiled::join;
    loops.store = Compiled::store;
  }
  return loops;
}

}  // namespace coll::kernels

// SPDX-License-Identifier: Apache-2.0
// The functions of an elementwise fold for each instruction set.
#pragma once

#include "kernels/block_loops.h"
#include "kernels/instruction_set.h"
#include "kernels/operation.h"
#include "kernels/two_sources.h"

namespace coll::kernels {

// Under a sanitizer loops are not vectorised: the versions would be one, and take minutes to
// compile.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kManyVersions = false;
#else
inline constexpr bool kManyVersions = true;
#endif

template <class Element, class Op>
struct BaselineLoops {
  using Bodies = LoopBodies<Element, Op>;
  static void combine(const void* element, void* to, const void* a, const void* b,
                      std::size_t n) noexcept {
    Bodies::combine(element, to, a, b, n);
  }
  static void load(const void* element, void* to, const void* a, std::size_t n) noexcept {
    Bodies::load(element, to, a, n);
  }
  static void fold_in(const void* element, void* to, const void* a, std::size_t n) noexcept {
    Bodies::fold_in(element, to, a, n);
  }
  static void join(void* to, const void* from, std::size_t n) noexcept {
    Bodies::join(to, from, n);
  }
  static void divide(void* values, double divisor, std::size_t n) noexcept {
    Bodies::divide(values, divisor, n);
  }
  static void store(const void* element, void* to, const void* values, std::size_t n) noexcept {
    Bodies::store(element, to, values, n);
  }
  static constexpr BlockLoops kLoops = loops_of<Element, Op, BaselineLoops>();
};

template <class Op, class Element>
void fold_with(const Fold& fold, Element element) noexcept {
  if (!folded_directly<Op>(fold, element)) {
    fold_blockwise(fold, BaselineLoops<Element, Op>::kLoops, &element);
  }
}

template <class Element, class Op>
void fold_baseline(const Fold& fold) noexcept {
  fold_with<Op>(fold, Element{});
}

#if defined(__x86_64__)

template <class Element, class Op>
struct Avx2Loops {
  using Bodies = LoopBodies<Element, Op>;
  [[gnu::target("avx2")]] static void combine(const void* element, void* to, const void* a,
                                              const void* b, std::size_t n) noexcept {
    Bodies::combine(element, to, a, b, n);
  }
  [[gnu::target("avx2")]] static void load(const void* element, void* to, const void* a,
                                           std::size_t n) noexcept {
    Bodies::load(element, to, a, n);
  }
  [[gnu::target("avx2")]] static void fold_in(const void* element, void* to, const void* a,
                                              std::size_t n) noexcept {
    Bodies::fold_in(element, to, a, n);
  }
  [[gnu::target("avx2")]] static void join(void* to, const void* from, std::size_t n) noexcept {
    Bodies::join(to, from, n);
  }
  [[gnu::target("avx2")]] static void divide(void* values, double divisor, std::size_t n) noexcept {
    Bodies::divide(values, divisor, n);
  }
  [[gnu::target("avx2")]] static void store(const void* element, void* to, const void* values,
                                            std::size_t n) noexcept {
    Bodies::store(element, to, values, n);
  }
  static constexpr BlockLoops kLoops = loops_of<Element, Op, Avx2Loops>();
};

template <class Element, class Op>
[[gnu::target("avx2")]] void fold_avx2(const Fold& fold) noexcept {
  if (!folded_directly<Op>(fold, Element{})) {
    fold_blockwise(fold, Avx2Loops<Element, Op>::kLoops, nullptr);
  }
}

template <class Element, class Op>
struct Avx512Loops {
  using Bodies = LoopBodies<Element, Op>;
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static void combine(
      const void* element, void* to, const void* a, const void* b, std::size_t n) noexcept {
    Bodies::combine(element, to, a, b, n);
  }
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static void load(const void* element,
                                                                         void* to, const void* a,
                                                                         std::size_t n) noexcept {
    Bodies::load(element, to, a, n);
  }
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static void fold_in(
      const void* element, void* to, const void* a, std::size_t n) noexcept {
    Bodies::fold_in(element, to, a, n);
  }
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static void join(void* to, const void* from,
                                                                         std::size_t n) noexcept {
    Bodies::join(to, from, n);
  }
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static void divide(void* values,
                                                                           double divisor,
                                                                           std::size_t n) noexcept {
    Bodies::divide(values, divisor, n);
  }
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static void store(const void* element,
                                                                          void* to,
                                                                          const void* values,
                                                                          std::size_t n) noexcept {
    Bodies::store(element, to, values, n);
  }
  static constexpr BlockLoops kLoops = loops_of<Element, Op, Avx512Loops>();
};

template <class Element, class Op>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] void fold_avx512(const Fold& fold) noexcept {
  if (!folded_directly<Op>(fold, Element{})) {
    fold_blockwise(fold, Avx512Loops<Element, Op>::kLoops, nullptr);
  }
}

#endif

// kKernel on kTimes as many elements: to a sum, a complex number is two floats.
template <FoldKernel kKernel, std::size_t kTimes>
void fold_times(const Fold& fold) noexcept {
  Fold longer = fold;
  longer.n *= kTimes;
  kKernel(longer);
}

template <FoldKernel kKernel, std::size_t kTimes>
consteval FoldKernel times() noexcept {
  if constexpr (kTimes == 1) {
    return kKernel;
  } else {
    return fold_times<kKernel, kTimes>;
  }
}

// The fold as compiled for `set`.
template <class Element, class Op, std::size_t kTimes = 1>
FoldKernel version_for([[maybe_unused]] InstructionSet set) noexcept {
#if defined(__x86_64__)
  if constexpr (kManyVersions) {
    if (set == InstructionSet::avx512) return times<fold_avx512<Element, Op>, kTimes>();
    if (set == InstructionSet::avx2) return times<fold_avx2<Element, Op>, kTimes>();
  }
#endif
  return times<fold_baseline<Element, Op>, kTimes>();
}

}  // namespace coll::kernels

// SPDX-License-Identifier: Apache-2.0
// One function of an elementwise fold for each instruction set.
#pragma once

#include "kernels/elementwise.h"
#include "kernels/instruction_set.h"
#include "kernels/operation.h"

namespace coll::kernels {

// Under a sanitizer loops are not vectorised: the versions would be one, and take minutes to
// compile.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kManyVersions = false;
#else
inline constexpr bool kManyVersions = true;
#endif

// The blocks of the general fold are not in the frame of the direct one.
template <class Op, class Element>
[[gnu::noinline]] void blockwise(const Fold& fold, Element element) noexcept {
  BlockwiseFold<Elementwise<Element>, Op>::run(fold, {element});
}

template <class Op, class Element>
void fold_with(const Fold& fold, Element element) noexcept {
  if (!folded_directly<16, Op>(fold, element)) blockwise<Op>(fold, element);
}

template <class Element, class Op>
void fold_baseline(const Fold& fold) noexcept {
  fold_with<Op>(fold, Element{});
}

#if defined(__x86_64__)

template <class Element, class Op>
[[gnu::noinline, gnu::target("avx2")]] void blockwise_avx2(const Fold& fold) noexcept {
  BlockwiseFold<Elementwise<Element>, Op>::run(fold, {});
}

template <class Element, class Op>
[[gnu::target("avx2")]] void fold_avx2(const Fold& fold) noexcept {
  if (!folded_directly<32, Op>(fold, Element{})) blockwise_avx2<Element, Op>(fold);
}

template <class Element, class Op>
[[gnu::noinline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] void blockwise_avx512(
    const Fold& fold) noexcept {
  BlockwiseFold<Elementwise<Element>, Op>::run(fold, {});
}

template <class Element, class Op>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] void fold_avx512(const Fold& fold) noexcept {
  if (!folded_directly<64, Op>(fold, Element{})) blockwise_avx512<Element, Op>(fold);
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

// SPDX-License-Identifier: Apache-2.0
#include "kernels/merge.h"

#include "kernels/merge_avx2.h"
#include "kernels/merge_avx512.h"
#include "kernels/merge_parts.h"

namespace coll::kernels {
namespace {

// The fastest merge of these types that `set` has.
template <class Index, class Element, class Op, bool kAdd>
Merge fastest_merge([[maybe_unused]] InstructionSet set) noexcept {
#if defined(__x86_64__)
  constexpr std::size_t bytes = sizeof(typename Element::Memory);
  if constexpr (bytes <= 8) {
    if (set == InstructionSet::avx512) {
      return BlockMerge<Index, Element, Op, kAdd, Blocks512<Index, Element, Op, kAdd>>::merge;
    }
  }
  if constexpr (bytes <= 4) {
    if (set == InstructionSet::avx2) {
      return BlockMerge<Index, Element, Op, kAdd, Blocks256<Index, Element, Op, kAdd>>::merge;
    }
  }
#endif
  return MergeParts<Index, Element, Op, kAdd>::merge;
}

template <class Index>
struct FastestMerge {
  InstructionSet set;
  template <class Element, class Op>
  Merge operator()() const noexcept {
    return fastest_merge<Index, Element, Op, true>(set);
  }
};

template <class Index>
struct OneAfterTheOther {
  template <class Element, class Op>
  Merge operator()() const noexcept {
    return ScalarMerge<Index, Element, Op, true>::merge;
  }
};

template <class Index>
Merge stable_merge_of(InstructionSet set, std::size_t value_bytes) noexcept {
  switch (value_bytes) {
    case 1:
      return fastest_merge<Index, Plain<std::uint8_t>, Sum, false>(set);
    case 2:
      return fastest_merge<Index, Plain<std::uint16_t>, Sum, false>(set);
    case 4:
      return fastest_merge<Index, Plain<std::uint32_t>, Sum, false>(set);
    case 8:
      return fastest_merge<Index, Plain<std::uint64_t>, Sum, false>(set);
    default:
      return fastest_merge<Index, Plain<ComplexNumber<double>>, ComplexSum<double>, false>(set);
  }
}

}  // namespace

Merge merge_for(InstructionSet set, Dtype dtype, std::size_t index_bytes) noexcept {
  return index_bytes == sizeof(std::uint32_t)
             ? visit_pair_sum(dtype, FastestMerge<std::uint32_t>{set})
             : visit_pair_sum(dtype, FastestMerge<std::uint64_t>{set});
}

Merge stable_merge_for(InstructionSet set, std::size_t value_bytes,
                       std::size_t index_bytes) noexcept {
  return index_bytes == sizeof(std::uint32_t) ? stable_merge_of<std::uint32_t>(set, value_bytes)
                                              : stable_merge_of<std::uint64_t>(set, value_bytes);
}

Merge scalar_merge(Dtype dtype, std::size_t index_bytes) noexcept {
  return index_bytes == sizeof(std::uint32_t)
             ? visit_pair_sum(dtype, OneAfterTheOther<std::uint32_t>{})
             : visit_pair_sum(dtype, OneAfterTheOther<std::uint64_t>{});
}

}  // namespace coll::kernels

// SPDX-License-Identifier: Apache-2.0
#include "kernels/pairs.h"

#include "kernels/expand.h"
#include "kernels/extract.h"
#include "kernels/instruction_set.h"
#include "kernels/merge.h"
#include "kernels/pair_sum.h"

namespace coll {
namespace kernels {
namespace {

template <class Index, class Element, class Op>
struct Summed {
  using Memory = typename Element::Memory;
  using IndexCell = Stored<Index>;
  using ValueCell = Stored<Memory>;

  static bool add_to(void* dense, std::uint64_t first, std::uint64_t length,
                     const PairsView& pairs) noexcept {
    const auto* indices = static_cast<const IndexCell*>(pairs.indices);
    const auto* values = static_cast<const ValueCell*>(pairs.values);
    auto* to = static_cast<ValueCell*>(dense);
    for (std::size_t i = 0; i < pairs.n; ++i) {
      const std::uint64_t place = indices[i].value - first;
      if (place >= length) return false;
      to[place].value = PairSum<Element, Op>::sum(to[place].value, values[i].value);
    }
    return true;
  }
};

template <class Index>
struct KernelsOf {
  InstructionSet set;
  template <class Element, class Op>
  PairKernels operator()() const noexcept {
    using Kernels = Summed<Index, Element, Op>;
    return {nullptr, Kernels::add_to, add_equal<Index, Element, Op>,
            fastest_extract<Index, Element, Op>(set), fastest_add_expanded<Element, Op>(set)};
  }
};

}  // namespace
}  // namespace kernels

PairKernels pair_kernels_for(InstructionSet set, Dtype dtype, std::size_t index_bytes) noexcept {
  PairKernels found = index_bytes == sizeof(std::uint32_t)
                          ? kernels::visit_pair_sum(dtype, kernels::KernelsOf<std::uint32_t>{set})
                          : kernels::visit_pair_sum(dtype, kernels::KernelsOf<std::uint64_t>{set});
  found.merge = kernels::merge_for(set, dtype, index_bytes);
  return found;
}

PairKernels pair_kernels(Dtype dtype, std::size_t index_bytes) noexcept {
  return pair_kernels_for(best_instruction_set(), dtype, index_bytes);
}

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// The table of fold kernels: dtype x operation x instruction set.
#include "kernels/fold_body.h"
#include "kernels/instruction_set.h"
#include "kernels/kernels.h"

namespace coll {
namespace {

using namespace kernels;  // NOLINT: the vocabulary of this table

// One function for each instruction set; the blocks of the general fold are not in its frame.
template <class Element, class Op>
[[gnu::noinline]] void blockwise(const Fold& fold) noexcept {
  FoldBody<Element, Op>::blockwise(fold);
}

template <class Element, class Op>
void fold_baseline(const Fold& fold) noexcept {
  if (!FoldBody<Element, Op>::direct(fold)) blockwise<Element, Op>(fold);
}

#if defined(__x86_64__)

template <class Element, class Op>
[[gnu::noinline, gnu::target("avx2")]] void blockwise_avx2(const Fold& fold) noexcept {
  FoldBody<Element, Op>::blockwise(fold);
}

template <class Element, class Op>
[[gnu::target("avx2")]] void fold_avx2(const Fold& fold) noexcept {
  if (!FoldBody<Element, Op>::direct(fold)) blockwise_avx2<Element, Op>(fold);
}

template <class Element, class Op>
[[gnu::noinline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] void blockwise_avx512(
    const Fold& fold) noexcept {
  FoldBody<Element, Op>::blockwise(fold);
}

template <class Element, class Op>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] void fold_avx512(const Fold& fold) noexcept {
  if (!FoldBody<Element, Op>::direct(fold)) blockwise_avx512<Element, Op>(fold);
}

template <class Element, class Op>
FoldKernel compiled_for(InstructionSet set) noexcept {
  switch (set) {
    case InstructionSet::avx512:
      return fold_avx512<Element, Op>;
    case InstructionSet::avx2:
      return fold_avx2<Element, Op>;
    case InstructionSet::baseline:
      break;
  }
  return fold_baseline<Element, Op>;
}

#else

template <class Element, class Op>
FoldKernel compiled_for(InstructionSet /*set*/) noexcept {
  return fold_baseline<Element, Op>;
}

#endif

template <class Element>
FoldKernel with_op(InstructionSet set, Reduction op) noexcept {
  switch (op) {
    case Reduction::avg:
      if (!std::is_floating_point_v<typename Element::Value>) break;
      [[fallthrough]];  // the caller's divisor makes the sum an average
    case Reduction::sum:
      return compiled_for<Element, Sum>(set);
    case Reduction::prod:
      return compiled_for<Element, Product>(set);
    case Reduction::min:
      return compiled_for<Element, Minimum>(set);
    case Reduction::max:
      return compiled_for<Element, Maximum>(set);
  }
  return nullptr;
}

}  // namespace

FoldKernel fold_kernel_for(InstructionSet set, Dtype dtype, Reduction op) noexcept {
  switch (dtype) {
    case Dtype::float32:
      return with_op<Plain<float>>(set, op);
    case Dtype::float64:
      return with_op<Plain<double>>(set, op);
    case Dtype::int32:
      return with_op<Plain<std::int32_t>>(set, op);
    case Dtype::int64:
      return with_op<Plain<std::int64_t>>(set, op);
    case Dtype::uint8:
      return with_op<Plain<std::uint8_t>>(set, op);
    case Dtype::bfloat16:
      return with_op<Bfloat16>(set, op);
  }
  return nullptr;
}

FoldKernel fold_kernel(Dtype dtype, Reduction op) noexcept {
  return fold_kernel_for(best_instruction_set(), dtype, op);
}

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// The table of fold kernels: dtype x operation x instruction set.
#include "kernels/blockwise_fold.h"
#include "kernels/families.h"

namespace coll {
namespace kernels {
namespace {

constexpr bool is_logical(Reduction op) noexcept {
  return op == Reduction::land || op == Reduction::lor || op == Reduction::lxor;
}

constexpr bool is_bitwise(Reduction op) noexcept {
  return op == Reduction::band || op == Reduction::bor || op == Reduction::bxor;
}

// The logical operation that any operation is on truths; others stay what they are.
constexpr Reduction of_truths(Reduction op) noexcept {
  switch (op) {
    case Reduction::sum:
    case Reduction::max:
    case Reduction::bor:
      return Reduction::lor;
    case Reduction::prod:
    case Reduction::min:
    case Reduction::band:
      return Reduction::land;
    case Reduction::bxor:
      return Reduction::lxor;
    default:
      return op;
  }
}

FoldKernel floating_kernel(InstructionSet set, Dtype dtype, Reduction op) noexcept {
  if (is_logical(op)) return logical_kernel(dtype, op);
  const bool converted = dtype == Dtype::float16 || size_of(dtype) == 1;
  return converted ? narrow_float_kernel(set, dtype, op) : float_kernel(set, dtype, op);
}

template <std::size_t kBytes>
void copy_cells(const Fold& fold) noexcept {
  copy_source(fold, fold.n * kBytes);
}

}  // namespace
}  // namespace kernels

FoldKernel fold_kernel_for(InstructionSet set, Dtype dtype, Reduction op) noexcept {
  if (!exists(dtype)) return nullptr;
  switch (family_of(dtype)) {
    case Family::floating:
      return kernels::floating_kernel(set, dtype, op);
    case Family::integer:
      if (kernels::is_logical(op)) return kernels::logical_kernel(dtype, op);
      if (kernels::is_bitwise(op)) return kernels::bitwise_kernel(size_of(dtype), op);
      return kernels::integer_kernel(set, dtype, op);
    case Family::boolean:
      return kernels::logical_kernel(dtype, kernels::of_truths(op));
    case Family::complex:
      return kernels::complex_kernel(set, dtype, op);
    case Family::pair:
      return kernels::pair_kernel(dtype, op);
  }
  return nullptr;
}

FoldKernel fold_kernel(Dtype dtype, Reduction op) noexcept {
  return fold_kernel_for(best_instruction_set(), dtype, op);
}

FoldKernel copy_kernel(Dtype dtype) noexcept {
  switch (exists(dtype) ? size_of(dtype) : 0) {
    case 1:
      return kernels::copy_cells<1>;
    case 2:
      return kernels::copy_cells<2>;
    case 4:
      return kernels::copy_cells<4>;
    case 8:
      return kernels::copy_cells<8>;
    case 16:
      return kernels::copy_cells<16>;
    default:
      return nullptr;
  }
}

}  // namespace coll

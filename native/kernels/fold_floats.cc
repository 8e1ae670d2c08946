// SPDX-License-Identifier: Apache-2.0
// Folds of float32, float64 and bfloat16; and of complex numbers, whose sums are sums of floats.
#include "kernels/families.h"
#include "kernels/versions.h"

namespace coll::kernels {
namespace {

template <class Element>
FoldKernel float_kernel_of(InstructionSet set, Reduction op) noexcept {
  switch (op) {
    case Reduction::sum:
    case Reduction::avg:  // the caller's divisor makes the sum an average
      return version_for<Element, Sum>(set);
    case Reduction::prod:
      return version_for<Element, Product>(set);
    case Reduction::min:
      return version_for<Element, Minimum>(set);
    case Reduction::max:
      return version_for<Element, Maximum>(set);
    default:
      return nullptr;
  }
}

template <class Part>
FoldKernel complex_kernel_of(InstructionSet set, Reduction op) noexcept {
  switch (op) {
    case Reduction::sum:
    case Reduction::avg:
      return version_for<Plain<Part>, Sum, 2>(set);
    case Reduction::prod:
      return fold_baseline<Plain<ComplexNumber<Part>>, Product>;
    default:
      return nullptr;
  }
}

}  // namespace

FoldKernel float_kernel(InstructionSet set, Dtype dtype, Reduction op) noexcept {
  switch (dtype) {
    case Dtype::float32:
      return float_kernel_of<Plain<float>>(set, op);
    case Dtype::float64:
      return float_kernel_of<Plain<double>>(set, op);
    case Dtype::bfloat16:
      return float_kernel_of<Bfloat16>(set, op);
    default:
      return nullptr;
  }
}

FoldKernel complex_kernel(InstructionSet set, Dtype dtype, Reduction op) noexcept {
  return dtype == Dtype::complex64 ? complex_kernel_of<float>(set, op)
                                   : complex_kernel_of<double>(set, op);
}

}  // namespace coll::kernels

// SPDX-License-Identifier: Apache-2.0
// Sums, products, minima and maxima of integers. Sums and products wrap around, so that signed ones
// are unsigned ones.
#include <type_traits>

#include "kernels/families.h"
#include "kernels/versions.h"

namespace coll::kernels {
namespace {

template <class Integer>
FoldKernel integer_kernel_of(InstructionSet set, Reduction op) noexcept {
  using Wrapped = Plain<std::make_unsigned_t<Integer>>;
  switch (op) {
    case Reduction::sum:
      return version_for<Wrapped, Sum>(set);
    case Reduction::prod:
      return version_for<Wrapped, Product>(set);
    case Reduction::min:
      return version_for<Plain<Integer>, Minimum>(set);
    case Reduction::max:
      return version_for<Plain<Integer>, Maximum>(set);
    default:
      return nullptr;
  }
}

}  // namespace

FoldKernel integer_kernel(InstructionSet set, Dtype dtype, Reduction op) noexcept {
  switch (dtype) {
    case Dtype::int8:
      return integer_kernel_of<std::int8_t>(set, op);
    case Dtype::int16:
      return integer_kernel_of<std::int16_t>(set, op);
    case Dtype::int32:
      return integer_kernel_of<std::int32_t>(set, op);
    case Dtype::int64:
      return integer_kernel_of<std::int64_t>(set, op);
    case Dtype::uint8:
      return integer_kernel_of<std::uint8_t>(set, op);
    case Dtype::uint16:
      return integer_kernel_of<std::uint16_t>(set, op);
    case Dtype::uint32:
      return integer_kernel_of<std::uint32_t>(set, op);
    case Dtype::uint64:
      return integer_kernel_of<std::uint64_t>(set, op);
    default:
      return nullptr;
  }
}

}  // namespace coll::kernels

// SPDX-License-Identifier: Apache-2.0
// Bitwise folds of integers: of bytes, whatever the integers are.
#include "kernels/families.h"
#include "kernels/versions.h"

namespace coll::kernels {
namespace {

template <class Op>
FoldKernel bitwise_kernel_of(std::size_t bytes) noexcept {
  constexpr FoldKernel kernel = fold_baseline<Plain<std::uint8_t>, Op>;
  switch (bytes) {
    case 1:
      return kernel;
    case 2:
      return fold_times<kernel, 2>;
    case 4:
      return fold_times<kernel, 4>;
    case 8:
      return fold_times<kernel, 8>;
    default:
      return nullptr;
  }
}

}  // namespace

FoldKernel bitwise_kernel(std::size_t bytes, Reduction op) noexcept {
  switch (op) {
    case Reduction::band:
      return bitwise_kernel_of<And>(bytes);
    case Reduction::bor:
      return bitwise_kernel_of<Or>(bytes);
    case Reduction::bxor:
      return bitwise_kernel_of<Xor>(bytes);
    default:
      return nullptr;
  }
}

}  // namespace coll::kernels

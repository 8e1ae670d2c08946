// SPDX-License-Identifier: Apache-2.0
// minloc and maxloc, of pairs of a value and its index.
#include "kernels/families.h"
#include "kernels/versions.h"

namespace coll::kernels {
namespace {

template <class V, class I>
FoldKernel pair_kernel_of(Reduction op) noexcept {
  static_assert(sizeof(Pair<V, I>) == 2 * sizeof(V), "as C and NumPy lay it out");
  switch (op) {
    case Reduction::minloc:
      return fold_baseline<Plain<Pair<V, I>>, MinimumLocated>;
    case Reduction::maxloc:
      return fold_baseline<Plain<Pair<V, I>>, MaximumLocated>;
    default:
      return nullptr;
  }
}

}  // namespace

FoldKernel pair_kernel(Dtype dtype, Reduction op) noexcept {
  switch (dtype) {
    case Dtype::float32_int32:
      return pair_kernel_of<float, std::int32_t>(op);
    case Dtype::float64_int64:
      return pair_kernel_of<double, std::int64_t>(op);
    case Dtype::int32_int32:
      return pair_kernel_of<std::int32_t, std::int32_t>(op);
    case Dtype::int64_int64:
      return pair_kernel_of<std::int64_t, std::int64_t>(op);
    default:
      return nullptr;
  }
}

}  // namespace coll::kernels

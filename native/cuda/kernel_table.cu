// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernel_table.h"
#include "cuda/taken.h"

namespace coll::cuda {

Kernel fold_kernel_of(Dtype dtype, Reduction op) noexcept {
  Kernel kernel = float_kernel(dtype, op);
  if (kernel.function == nullptr) kernel = narrow_float_kernel(dtype, op);
  if (kernel.function == nullptr) kernel = integer_kernel(dtype, op);
  if (kernel.function == nullptr) use_boolean(dtype, op, Taken{kernel});
  return kernel;
}

Kernel copy_kernel_of(Dtype dtype) noexcept {
  Kernel kernel;
  use_copy(dtype, Taken{kernel});
  return kernel;
}

}  // namespace coll::cuda

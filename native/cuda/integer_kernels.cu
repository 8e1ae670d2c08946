// SPDX-License-Identifier: Apache-2.0
#include "cuda/taken.h"

namespace coll::cuda {

Kernel integer_kernel(Dtype dtype, Reduction op) noexcept {
  Kernel kernel;
  use_integer(dtype, op, Taken{kernel});
  return kernel;
}

}  // namespace coll::cuda

// SPDX-License-Identifier: Apache-2.0
// Complex sums are sums of floats, so both are of one file.
#include "cuda/taken.h"

namespace coll::cuda {

Kernel float_kernel(Dtype dtype, Reduction op) noexcept {
  Kernel kernel;
  if (!use_float(dtype, op, Taken{kernel})) use_complex(dtype, op, Taken{kernel});
  return kernel;
}

}  // namespace coll::cuda

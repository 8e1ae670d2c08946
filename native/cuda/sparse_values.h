// SPDX-License-Identifier: Apache-2.0
// Which values sparse vectors on a GPU have: floats, which are added in float32 or wider and
// rounded once.
#pragma once

#include "cuda/elements.h"
#include "kernels/dtype.h"

namespace coll::cuda {

template <class Use>
bool use_values(Dtype dtype, Use&& use) {
  switch (dtype) {
    case Dtype::float32:
      use.template operator()<kernels::Plain<float>>();
      return true;
    case Dtype::float64:
      use.template operator()<kernels::Plain<double>>();
      return true;
    case Dtype::float16:
      use.template operator()<Half>();
      return true;
    case Dtype::bfloat16:
      use.template operator()<Bfloat16>();
      return true;
    default:
      return false;
  }
}

}  // namespace coll::cuda

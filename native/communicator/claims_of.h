// SPDX-License-Identifier: Apache-2.0
// What an algorithm claims for p ranks, as the provers take it.
#pragma once

#include "algorithms/algorithm.h"
#include "algorithms/product.h"
#include "prove/claims.h"

namespace coll {

Claims claims_of(const Algorithm& algorithm, int p);
Claims claims_of(Kind kind, const ProductCost& cost);

}  // namespace coll

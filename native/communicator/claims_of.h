// SPDX-License-Identifier: Apache-2.0
// What an algorithm claims for p ranks, as the provers take it.
#pragma once

#include "algorithms/algorithm.h"
#include "prove/claims.h"

namespace coll {

Claims claims_of(const Algorithm& algorithm, int p);

}  // namespace coll

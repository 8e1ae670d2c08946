// SPDX-License-Identifier: Apache-2.0
// What a caller wishes of an algorithm, and which of the table fulfil it.
#pragma once

#include "algorithms/algorithm.h"
#include "select/choose.h"

namespace coll {

// By its index in algorithms().
const Algorithm& algorithm_at(int algorithm);

// Whether an algorithm sums in the tree that is wished for, and takes blocks of such sizes where it
// was not named: by the communicator, who knows the plan, those that were are refused.
bool suits(const Algorithm& a, int ranks, const Wish& wish);

// The first of the table that does. Throws Error(unsupported) where there is none.
int first_suitable(Kind kind, int ranks, const Wish& wish);

// The one that the caller has named. Throws Error where it is none of this kind, not for so many
// ranks, or does not keep the order of ranks where it must.
int wished_algorithm(Kind kind, int ranks, const Wish& wish);

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Where a rank makes sure that others see what it has stored around its caches: before it tells
// them of it, by a post or a flag, and before its call returns.
#pragma once

#include "plan/plan.h"

namespace coll {

// The posts must be known (waits.h). Without non-temporal stores no op needs a fence.
void place_fences(Plan& plan);

}  // namespace coll

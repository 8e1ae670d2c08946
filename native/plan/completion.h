// SPDX-License-Identifier: Apache-2.0
// Which folds of a schedule produce finished sums: there the epilogue (the division of avg, a cast)
// belongs, once per rank and chunk, before the value travels on.
#pragma once

#include <vector>

#include "schedule/schedule.h"

namespace coll {

// complete[rank][step]: the recv_reduce gives cells that hold every contribution. Throws Error
// where one step mixes finished with unfinished cells.
std::vector<std::vector<bool>> completing_steps(const Schedule& schedule);

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Which plans might be faster than the one that the rules choose, by the cost model: few, to be
// tried.
#pragma once

#include <cstddef>
#include <vector>

#include "schedule/schedule.h"
#include "select/choose.h"
#include "select/tuned.h"
#include "topology/machine_costs.h"

namespace coll {

// Predictions of more ranks take longer than what they could save.
inline constexpr int kMostRivalRanks = 16;

// Seconds that a choice is predicted to take, in memory that its ranks share: of a call alone; of
// one that short vectors let follow at once, the geometric mean of that and of one call after
// another.
double predicted_seconds(const Schedule& schedule, const Choice& choice, std::size_t bytes,
                         const MachineCosts& machine);

// Of calls on vectors of about so many bytes (as many bits) among ranks that share memory, with at
// most `most_lag`; the most promising first, none that is predicted to take half as long again as
// the rule's. `crowded`: as of a Wish. Milliseconds.
std::vector<TunedLine> rivals_of_rule(Kind kind, int ranks, std::size_t bytes, int most_lag,
                                      const MachineCosts& machine, bool crowded = false);

}  // namespace coll

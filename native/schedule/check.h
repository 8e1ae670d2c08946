// SPDX-License-Identifier: Apache-2.0
// The definition of a valid schedule: what must hold before anything may index by it. A schedule
// that passes may still compute nonsense (see prove/), but it cannot make a reader go astray.
#pragma once

#include <optional>
#include <string>

#include "schedule/schedule.h"

namespace coll {

// The first broken rule, as a sentence naming rank and step; nothing where all hold.
std::optional<std::string> broken_structure(const Schedule& schedule);

// "rank 3, step 5 (round 2, recv from 1)": how all messages about schedules name a step.
std::string describe(int rank, const Program& program, std::size_t step);

}  // namespace coll

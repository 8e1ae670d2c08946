// SPDX-License-Identifier: Apache-2.0
// What two ranks tell and hand each other.
#pragma once

#include <vector>

#include "probe/figures.h"
#include "probe/machine_probe.h"
#include "probe/meeting.h"
#include "probe/samples.h"

namespace coll {

// Seconds until another rank sees a word of this one, by rank; 0: not measured. All pairs, as far
// as there is time.
std::vector<double> flags_to_others(Meeting& meeting, double seconds);

// How messages go through slots: as those of calls between cores so far apart.
struct Slots {
  Placement placement = Placement::near;
  std::size_t second_cache = 0;  // bytes
};

// Messages between this rank and another one, both ways at one time. Of an odd number of ranks one
// has nobody.
void measure_exchanges(Meeting& meeting, const ProbedWork& work, const Figures::Points& sizes,
                       const Slots& slots, double seconds, Figures& figures);

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Ranks for a measurement, as threads or as forked processes, each bound to a core.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "collectives.h"

namespace limits {

enum class Kind { threads, processes };

// What one rank does: it fills its samples (nanoseconds), as many as every other rank.
using Work = std::function<void(coll_comm* comm, int rank, std::span<double> samples)>;

// Throws std::runtime_error with the library's own sentence unless `status` is COLL_OK.
void require(coll_status status);

// Runs `work` on all ranks, rank r on core r mod cores. Returns the slowest rank's samples.
std::vector<double> run_team(Kind kind, int ranks, const std::vector<int>& cores,
                             std::size_t samples, const Work& work);

}  // namespace limits

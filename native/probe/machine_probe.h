// SPDX-License-Identifier: Apache-2.0
// Measures what a machine costs the ranks of a running group: how far apart their cores are, how
// fast they copy, fold, and read from each other, all of them at one time, as in a call.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/machine_costs.h"
#include "transport/segment.h"

namespace coll {

// What is timed: the library's own work, of which probe/ knows nothing.
struct ProbedWork {
  void (*copy)(void* to, const void* from, std::size_t bytes, bool around) noexcept;
  void (*add)(void* to, const void* a, const void* b, std::size_t bytes) noexcept;  // float32
};

struct ProbeTask {
  double seconds = 0.2;     // to measure for, roughly
  double timeout = 10;      // to wait for another rank
  std::uint64_t token = 0;  // the same on all ranks, and never before in this group
};

struct Probed {
  MachineCosts costs;         // the same on all ranks
  std::vector<double> flags;  // seconds from rank to rank, one way, row by row; 0: not measured
};

// Every rank of the group calls it, between the same two of its calls; each must be over on all
// ranks before, and none may begin before all are back: the rings of slots are written. Throws
// Error(timeout) where a rank does not come, and Error(unsupported) where slots are too small.
Probed probe_machine(const Segment& segment, int rank, const ProbedWork& work,
                     const ProbeTask& task);

}  // namespace coll

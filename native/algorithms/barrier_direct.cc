// SPDX-License-Identifier: Apache-2.0
// Graham & Shipman, "MPI Support for Multi-core Architectures: Optimized Shared Memory
// Collectives", EuroPVM/MPI 2008. Everybody says once that it is there, and waits until it has
// heard so of everybody: one round, where dissemination takes log2 p, each of which may wait for a
// core.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

const Algorithm barrier_direct = {
    .kind = Kind::barrier,
    .name = "direct",
    .paper =
        "Graham & Shipman, MPI Support for Multi-core Architectures: Optimized Shared Memory "
        "Collectives, EuroPVM/MPI 2008",
    .summary = "One round: everybody says once that it is there, and hears everybody.",
    .rounds = "p>1",
    .bytes = "",
    .reductions = "",
    .restriction = "",
    .tree = {},
    .fits = any_p,
    .chunks = one_chunk,
    .generate = one_shot,
    .symmetry = rotation};

}  // namespace coll

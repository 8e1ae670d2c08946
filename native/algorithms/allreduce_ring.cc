// SPDX-License-Identifier: Apache-2.0
// Patarasuk & Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
// JPDC 69(2), 2009. Reduce-scatter round the ring, then allgather round the ring.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

const Algorithm allreduce_ring = {
    .kind = Kind::allreduce,
    .name = "ring",
    .paper = "Patarasuk & Yuan, Bandwidth optimal all-reduce algorithms, JPDC 69(2), 2009",
    .summary =
        "Optimal bytes, and each rank talks to its two neighbours only: where links are scarce.",
    .rounds = "2*(p-1)",
    .bytes = "2*(p-1)/p",
    .reductions = "(p-1)/p",
    .restriction = "",
    .tree = {.same_on_ranks = true},
    .fits = any_p,
    .chunks = chunk_per_rank,
    .generate =
        [](Builder& b) {
          const Blocks blocks = split(b.all(), b.p());
          const int round = reduce_scatter_ring_phase(b, 0, world(b), blocks);
          allgather_ring_phase(b, round, world(b), blocks);
        },
    .symmetry = rotation};

}  // namespace coll

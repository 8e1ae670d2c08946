// SPDX-License-Identifier: Apache-2.0
// Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004, on a fully connected
// network: direct reduce-scatter, then direct allgather. In shared memory it becomes the kernel in
// which the owner of a slice reads all inputs and writes all outputs.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

const Algorithm allreduce_direct_two_shot = {
    .kind = Kind::allreduce,
    .name = "direct_two_shot",
    .paper = "Rabenseifner, Optimization of Collective Reduction Operations, ICCS 2004",
    .summary = "Two rounds with optimal bytes: every rank reduces its slice and publishes it.",
    .rounds = "2*(p>1)",
    .bytes = "2*(p-1)/p",
    .reductions = "(p-1)/p",
    .restriction = "",
    .tree = {.same_on_ranks = true,
             .same_in_vector = true,
             .rank_order = true,
             .one_fold = true,
             .canonical = any_p},
    .fits = any_p,
    .chunks = chunk_per_rank,
    .generate =
        [](Builder& b) {
          const Blocks blocks = split(b.all(), b.p());
          const int round = reduce_scatter_direct_phase(b, 0, world(b), blocks);
          allgather_direct_phase(b, round, world(b), blocks);
        },
    .symmetry = rotation};

}  // namespace coll

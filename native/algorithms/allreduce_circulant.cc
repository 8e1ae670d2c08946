// SPDX-License-Identifier: Apache-2.0
// Traeff, "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms", arXiv:2410.14234, 2024.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

const Algorithm allreduce_circulant = {
    .kind = Kind::allreduce,
    .name = "circulant",
    .paper =
        "Traeff, Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms, "
        "arXiv:2410.14234, 2024",
    .summary = "Optimal bytes in 2 ceil(log2 p) rounds for any p: the default among many machines.",
    .rounds = "2*L",
    .bytes = "2*(p-1)/p",
    .reductions = "(p-1)/p",
    .restriction = "",
    .tree = {.same_on_ranks = true},
    .fits = any_p,
    .chunks = chunk_per_rank,
    .generate =
        [](Builder& b) {
          const Blocks blocks = split(b.all(), b.p());
          const int round = reduce_scatter_circulant_phase(b, 0, world(b), blocks);
          allgather_circulant_phase(b, round, world(b), blocks);
        },
    .symmetry = rotation};

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Thakur, Rabenseifner & Gropp, "Optimization of Collective Communication Operations in MPICH",
// IJHPCA 19(1), 2005. Reduction to rank 0, then broadcast from it.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

const Algorithm allreduce_binomial_tree = {
    .kind = Kind::allreduce,
    .name = "binomial_tree",
    .paper =
        "Thakur, Rabenseifner & Gropp, Optimization of Collective Communication Operations "
        "in MPICH, IJHPCA 19(1), 2005",
    .summary = "Reduction to rank 0 by a binomial tree, and broadcast of the result.",
    .rounds = "2*L",
    .bytes = "L",
    .reductions = "L",
    .restriction = "",
    .tree = {.same_on_ranks = true, .same_in_vector = true, .rank_order = true, .canonical = any_p},
    .fits = any_p,
    .chunks = one_chunk,
    .generate = [](Builder& b) {
      const int round = reduce_binomial_phase(b, 0, world(b));
      broadcast_binomial_phase(b, round, world(b));
    }};

}  // namespace coll

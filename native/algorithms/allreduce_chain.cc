// SPDX-License-Identifier: Apache-2.0
// Pjesivac-Grbovic et al., "Performance Analysis of MPI Collective Operations", Cluster Computing
// 10(2), 2007. Their pipelined reduction along the ranks, which ends at the last one, and the
// pipelined broadcast back: a chunk turns round while others are still on their way.
#include <algorithm>
#include <array>

#include "algorithms/algorithm.h"
#include "algorithms/tree.h"

namespace coll {

const Algorithm allreduce_chain = {
    .kind = Kind::allreduce,
    .name = "chain",
    .paper =
        "Pjesivac-Grbovic et al., Performance Analysis of MPI Collective Operations, "
        "Cluster Computing 10(2), 2007",
    .summary =
        "Partial sums walk up a chain in rank order and return as results, chunk behind chunk.",
    .rounds = "(p > 1) * (2 * p + 5)",
    .bytes = "(p > 1) + (p > 2)",
    .reductions = "p > 1",
    .restriction = "",
    .tree = {.same_on_ranks = true,
             .same_in_vector = true,
             .rank_order = true,
             .canonical = [](int p) { return p <= 3; }},
    .fits = any_p,
    .chunks = one_pipeline,
    .generate = [](Builder& b) {
      Team down = world(b);
      std::reverse(down.ranks.begin(), down.ranks.end());
      down.me = b.p() - 1 - b.rank();
      pipe(b, std::array{chain(b, down)}, Way::up_and_down);
    }};

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Pjesivac-Grbovic et al., "Performance Analysis of MPI Collective Operations", Cluster Computing
// 10(2), 2007. The chain of the broadcast with its arrows turned round: partial sums walk towards
// the root.
#include <array>

#include "algorithms/algorithm.h"
#include "algorithms/tree.h"

namespace coll {

const Algorithm reduce_chain = {
    .kind = Kind::reduce,
    .name = "chain",
    .paper =
        "Pjesivac-Grbovic et al., Performance Analysis of MPI Collective Operations, "
        "Cluster Computing 10(2), 2007",
    .summary =
        "Partial sums of chunks follow each other up a chain; every rank adds each byte once.",
    .rounds = "(p > 1) * (p + 6)",
    .bytes = "p > 1",
    .reductions = "p > 1",
    .restriction = "",
    .tree = {.same_on_ranks = true, .same_in_vector = true},
    .fits = any_p,
    .chunks = one_pipeline,
    .generate = [](Builder& b) { pipe(b, std::array{chain(b, rooted(b))}, Way::up); }};

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Pjesivac-Grbovic et al., "Performance Analysis of MPI Collective Operations", Cluster Computing
// 10(2), 2007. Every rank hands each chunk on to the next as soon as it has it.
#include <array>

#include "algorithms/algorithm.h"
#include "algorithms/tree.h"

namespace coll {

const Algorithm broadcast_chain = {
    .kind = Kind::broadcast,
    .name = "chain",
    .paper =
        "Pjesivac-Grbovic et al., Performance Analysis of MPI Collective Operations, "
        "Cluster Computing 10(2), 2007",
    .summary =
        "Chunks follow each other down a chain: each byte is sent once by every rank but the last.",
    .rounds = "(p > 1) * (p + 6)",
    .bytes = "p > 1",
    .reductions = "0",
    .restriction = "",
    .tree = {.same_on_ranks = true, .same_in_vector = true},
    .fits = any_p,
    .chunks = one_pipeline,
    .generate = [](Builder& b) { pipe(b, std::array{chain(b, rooted(b))}, Way::down); }};

}  // namespace coll

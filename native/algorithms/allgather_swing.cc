// SPDX-License-Identifier: Apache-2.0
// De Sensi, Bonato, Saam & Hoefler, "Swing: Short-cutting Rings for Higher Bandwidth Allreduce",
// NSDI 2024. The second half of their allreduce.
#include "algorithms/algorithm.h"
#include "algorithms/negabinary.h"

namespace coll {

const Algorithm allgather_swing = {
    .kind = Kind::allgather,
    .name = "swing",
    .paper =
        "De Sensi, Bonato, Saam & Hoefler, Swing: Short-cutting Rings for Higher Bandwidth "
        "Allreduce, NSDI 2024",
    .summary =
        "One block to the farthest partner, half of the vector to a neighbour: for tori and rings.",
    .rounds = "lg(p-1)+(p>1)-(p>2)",
    .bytes = "(p-1)/p",
    .reductions = "0",
    .restriction = "",
    .tree = {.same_on_ranks = true, .same_in_vector = true},
    .fits = any_p,
    .chunks = chunk_per_rank,
    .generate =
        [](Builder& b) {
          allgather_negabinary_phase(b, 0, world(b), split(b.all(), b.p()), Begin::far);
        },
    .symmetry = mirrored};

}  // namespace coll

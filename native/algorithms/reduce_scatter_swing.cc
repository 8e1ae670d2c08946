// SPDX-License-Identifier: Apache-2.0
// De Sensi, Bonato, Saam & Hoefler, "Swing: Short-cutting Rings for Higher Bandwidth Allreduce",
// NSDI 2024. The first half of their allreduce.
#include "algorithms/algorithm.h"
#include "algorithms/negabinary.h"

namespace coll {

const Algorithm reduce_scatter_swing = {
    .kind = Kind::reduce_scatter,
    .name = "swing",
    .paper =
        "De Sensi, Bonato, Saam & Hoefler, Swing: Short-cutting Rings for Higher Bandwidth "
        "Allreduce, NSDI 2024",
    .summary =
        "Half of the vector to a neighbour, one block to the farthest partner: for tori and rings.",
    .rounds = "lg(p-1)+(p>1)-(p>2)",
    .bytes = "(p-1)/p",
    .reductions = "(p-1)/p",
    .restriction = "",
    .tree = {.canonical = [](int p) { return p <= 4; }},
    .fits = any_p,
    .chunks = chunk_per_rank,
    .generate =
        [](Builder& b) {
          reduce_scatter_negabinary_phase(b, 0, world(b), split(b.all(), b.p()), Begin::far);
        },
    .symmetry = mirrored};

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// De Sensi, Bonato, Saam & Hoefler, "Swing: Short-cutting Rings for Higher Bandwidth Allreduce",
// NSDI 2024. Half of the vector to a neighbour, and one block to the partner of the last round, a
// third of the ring away: what is large goes by few links. An odd number of ranks is an even one
// and a rank that exchanges single blocks with each of them. Parts of the vector are dealt out so
// that those that travel together lie side by side, as in Bine (allreduce_bine).
#include "algorithms/algorithm.h"
#include "algorithms/negabinary.h"

namespace coll {

const Algorithm allreduce_swing = {
    .kind = Kind::allreduce,
    .name = "swing",
    .paper =
        "De Sensi, Bonato, Saam & Hoefler, Swing: Short-cutting Rings for Higher Bandwidth "
        "Allreduce, NSDI 2024",
    .summary =
        "Optimal bytes in 2 log2 p rounds, the large messages to the nearest: for tori and rings.",
    .rounds = "2*(lg(p-1)+(p>1)-(p>2))",
    .bytes = "2*(p-1)/p",
    .reductions = "(p-1)/p",
    .restriction = "",
    .tree = {.same_on_ranks = true, .canonical = [](int p) { return p <= 4; }},
    .fits = any_p,
    .chunks = chunk_per_rank,
    .generate =
        [](Builder& b) {
          const Blocks blocks = negabinary_blocks(b.all(), b.p());
          const int round = reduce_scatter_negabinary_phase(b, 0, world(b), blocks, Begin::far);
          allgather_negabinary_phase(b, round, world(b), blocks, Begin::far);
        },
    .symmetry = mirrored};

}  // namespace coll

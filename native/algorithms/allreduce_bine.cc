// SPDX-License-Identifier: Apache-2.0
// De Sensi, Pasqualoni, Piarulli, Bonato, Ba, Turisini, Domke & Hoefler, "Bine Trees: Enhancing
// Collective Operations by Optimizing Communication Locality", SC 2025.
// Of its butterflies the one whose messages are one or two ranges: far partners first, and near
// ones first on the way back. With near ones first in both it would be allreduce_swing. Its form of
// few rounds, in which whole vectors are exchanged, is left out: at each rank it sums in another
// order, so that ranks get different bits.
#include "algorithms/algorithm.h"
#include "algorithms/negabinary.h"

namespace coll {

const Algorithm allreduce_bine = {
    .kind = Kind::allreduce,
    .name = "bine",
    .paper =
        "De Sensi, Pasqualoni, Piarulli, Bonato, Ba, Turisini, Domke & Hoefler, Bine Trees: "
        "Enhancing Collective Operations by Optimizing Communication Locality, SC 2025",
    .summary =
        "Optimal bytes in 2 log2 p rounds, in long runs, large messages a third of the ring away.",
    .rounds = "2*(lg(p-1)+(p>1)-(p>2))",
    .bytes = "2*(p-1)/p",
    .reductions = "(p-1)/p",
    .restriction = "",
    .tree = {.same_on_ranks = true, .canonical = [](int p) { return p <= 3; }},
    .fits = any_p,
    .chunks = chunk_per_rank,
    .generate =
        [](Builder& b) {
          const Blocks blocks = split(b.all(), b.p());
          const int round = reduce_scatter_negabinary_phase(b, 0, world(b), blocks, Begin::near);
          allgather_negabinary_phase(b, round, world(b), blocks, Begin::near);
        },
    .symmetry = mirrored};

}  // namespace coll

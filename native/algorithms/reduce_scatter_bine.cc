// SPDX-License-Identifier: Apache-2.0
// De Sensi, Pasqualoni, Piarulli, Bonato, Ba, Turisini, Domke & Hoefler, "Bine Trees: Enhancing
// Collective Operations by Optimizing Communication Locality", SC 2025.
// Of its forms the one whose messages are one or two ranges: far partners first.
#include "algorithms/algorithm.h"
#include "algorithms/negabinary.h"

namespace coll {

const Algorithm reduce_scatter_bine = {
    .kind = Kind::reduce_scatter,
    .name = "bine",
    .paper =
        "De Sensi, Pasqualoni, Piarulli, Bonato, Ba, Turisini, Domke & Hoefler, Bine Trees: "
        "Enhancing Collective Operations by Optimizing Communication Locality, SC 2025",
    .summary =
        "Recursive halving with partners a third of the ring away instead of half, for any p.",
    .rounds = "lg(p-1)+(p>1)-(p>2)",
    .bytes = "(p-1)/p",
    .reductions = "(p-1)/p",
    .restriction = "",
    .tree = {.canonical = [](int p) { return p <= 3; }},
    .fits = any_p,
    .chunks = chunk_per_rank,
    .generate =
        [](Builder& b) {
          reduce_scatter_negabinary_phase(b, 0, world(b), split(b.all(), b.p()), Begin::near);
        },
    .symmetry = mirrored};

}  // namespace coll

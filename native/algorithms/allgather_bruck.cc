// SPDX-License-Identifier: Apache-2.0
// Bruck, Ho, Kipnis, Upfal & Weathersby, "Efficient Algorithms for All-to-All Communications in
// Multiport Message-Passing Systems", IEEE TPDS 8(11), 1997. In round t a rank has the 2^t blocks
// from its own on and fetches those after them. Blocks go straight to their places: nothing is
// rotated at the end.
#include <algorithm>

#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

const Algorithm allgather_bruck = {
    .kind = Kind::allgather,
    .name = "bruck",
    .paper =
        "Bruck, Ho, Kipnis, Upfal & Weathersby, Efficient Algorithms for All-to-All "
        "Communications in Multiport Message-Passing Systems, IEEE TPDS 8(11), 1997",
    .summary = "The blocks that a rank has double in every round, for any number of ranks.",
    .rounds = "L",
    .bytes = "(p-1)/p",
    .reductions = "0",
    .restriction = "",
    .tree = {.same_on_ranks = true, .same_in_vector = true},
    .fits = any_p,
    .chunks = chunk_per_rank,
    .generate =
        [](Builder& b) {
          const Team team = world(b);
          const Blocks blocks = split(b.all(), b.p());
          for (int round = 0, have = 1; have < b.p(); have *= 2, ++round) {
            const int more = std::min(have, b.p() - have);
            b.send(round, team.ahead(-have), cyclic(blocks, team.me, more));
            b.recv(round, team.ahead(have), cyclic(blocks, team.me + have, more));
          }
        },
    .symmetry = rotation};

}  // namespace coll

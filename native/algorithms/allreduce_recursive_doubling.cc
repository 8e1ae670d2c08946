// SPDX-License-Identifier: Apache-2.0
// Thakur, Rabenseifner & Gropp, "Optimization of Collective Communication Operations in MPICH",
// IJHPCA 19(1), 2005. Partners at distance 1, 2, 4, ... exchange whole vectors.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

const Algorithm allreduce_recursive_doubling = {
    .kind = Kind::allreduce,
    .name = "recursive_doubling",
    .paper =
        "Thakur, Rabenseifner & Gropp, Optimization of Collective Communication Operations in "
        "MPICH, IJHPCA 19(1), 2005",
    .summary = "Fewest rounds with one message each: short vectors, ranks a power of two.",
    .rounds = "K+2*(p>P)",
    .bytes = "K+(p>P)",
    .reductions = "K+(p>P)",
    .restriction = "",
    .tree = {.same_on_ranks = true,
             .same_in_vector = true,
             .rank_order = true,
             .canonical = ones_then_zeros},
    .fits = any_p,
    .chunks = one_chunk,
    .generate =
        [](Builder& b) {
          const int members = power_below(b.p());
          fold_neighbours(b, members, floor_log2(members), b.all(),
                          [&](int round, const Team& team) {
                            for (int distance = 1; distance < members; distance *= 2, ++round) {
                              const int partner = team.at(team.me ^ distance);
                              b.send(round, partner, b.all());
                              b.recv_reduce(round, partner, b.all());
                            }
                          });
        },
    .symmetry = flipped_bits};

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Thakur, Rabenseifner & Gropp, "Optimization of Collective Communication Operations in MPICH",
// IJHPCA 19(1), 2005. Near partners first, each time with all that both have.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

const Algorithm allgather_recursive_doubling = {
    .kind = Kind::allgather,
    .name = "recursive_doubling",
    .paper =
        "Thakur, Rabenseifner & Gropp, Optimization of Collective Communication Operations "
        "in MPICH, IJHPCA 19(1), 2005",
    .summary = "The blocks that a rank has double in every round; ranks a power of two.",
    .rounds = "K",
    .bytes = "(p-1)/p",
    .reductions = "0",
    .restriction = "the number of ranks must be a power of two",
    .tree = {.same_on_ranks = true, .same_in_vector = true},
    .fits = [](int p) { return power_below(p) == p; },
    .chunks = chunk_per_rank,
    .generate =
        [](Builder& b) {
          const Team team = world(b);
          const Blocks blocks = split(b.all(), b.p());
          for (int round = 0, distance = 1; distance < b.p(); distance *= 2, ++round) {
            const int partner = team.me ^ distance;
            const int mine = team.me / distance * distance, theirs = partner / distance * distance;
            b.send(round, partner, cyclic(blocks, mine, distance));
            b.recv(round, partner, cyclic(blocks, theirs, distance));
          }
        }};

}  // namespace coll

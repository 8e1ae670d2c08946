// SPDX-License-Identifier: Apache-2.0
// Thakur, Rabenseifner & Gropp, "Optimization of Collective Communication Operations in MPICH",
// IJHPCA 19(1), 2005. Near partners first, each time with all that both have.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

int allgather_doubling_phase(Builder& b, int round, const Team& team, const Blocks& blocks) {
  for (int distance = 1; distance < team.size(); distance *= 2, ++round) {
    const int partner = team.me ^ distance;
    const int mine = team.me / distance * distance, theirs = partner / distance * distance;
    b.send(round, team.at(partner), cyclic(blocks, mine, distance));
    b.recv(round, team.at(partner), cyclic(blocks, theirs, distance));
  }
  return round;
}

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
    .generate = [](Builder& b) { allgather_doubling_phase(b, 0, world(b), split(b.all(), b.p())); },
    .symmetry = flipped_bits};

}  // namespace coll

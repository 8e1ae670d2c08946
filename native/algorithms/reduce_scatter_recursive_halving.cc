// SPDX-License-Identifier: Apache-2.0
// Thakur, Rabenseifner & Gropp, "Optimization of Collective Communication Operations in MPICH",
// IJHPCA 19(1), 2005. Far partners first, each time for half of what is left. Where ranks are not a
// power of two, neighbours merge first and share two blocks.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

int reduce_scatter_halving_phase(Builder& b, int round, const Team& team, const Blocks& blocks) {
  for (int distance = team.size() / 2; distance > 0; distance /= 2, ++round) {
    const int partner = team.me ^ distance;
    const int mine = team.me / distance * distance, given = partner / distance * distance;
    b.send(round, team.at(partner), cyclic(blocks, given, distance));
    b.recv_reduce(round, team.at(partner), cyclic(blocks, mine, distance));
  }
  return round;
}

const Algorithm reduce_scatter_recursive_halving = {
    .kind = Kind::reduce_scatter,
    .name = "recursive_halving",
    .paper =
        "Thakur, Rabenseifner & Gropp, Optimization of Collective Communication Operations "
        "in MPICH, IJHPCA 19(1), 2005",
    .summary = "Half of the vector to a far partner, a quarter to a nearer one, and so on.",
    .rounds = "K+2*(p>P)",
    .bytes = "(p-1)/p+(p>P)/p",
    .reductions = "",
    .restriction = "",
    .tree = {.same_in_vector = true, .canonical = [](int p) { return p <= 3; }},
    .fits = any_p,
    .chunks = chunk_per_rank,
    .generate =
        [](Builder& b) {
          const int members = power_below(b.p()), merged = 2 * (b.p() - members);
          const Chunks partner_block(b.rank() & ~1, 1);  // of those that merge, the even ones' own
          fold_neighbours(
              b, members, floor_log2(members), partner_block, [&](int round, const Team& team) {
                Blocks blocks;
                for (const int rank : team.ranks) {
                  blocks.push_back(rank < merged ? Chunks(rank - 1, 2) : Chunks(rank, 1));
                }
                reduce_scatter_halving_phase(b, round, team, blocks);
              });
        },
    .symmetry = flipped_bits};

}  // namespace coll

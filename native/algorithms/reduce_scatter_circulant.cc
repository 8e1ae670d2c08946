// SPDX-License-Identifier: Apache-2.0
// Traeff, "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms", arXiv:2410.14234, 2024.
// Member r holds partial sums of the s blocks r ... r+s-1. With h = ceil(s/2) it hands the upper
// ones to member r+h and keeps h of them; s = n, then halved until one block is left.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

int reduce_scatter_circulant_phase(Builder& b, int round, const Team& team, const Blocks& blocks) {
  for (int s = team.size(), h = 0; s > 1; s = h, ++round) {
    h = (s + 1) / 2;
    b.send(round, team.ahead(h), cyclic(blocks, team.me + h, s - h));
    b.recv_reduce(round, team.ahead(-h), cyclic(blocks, team.me, s - h));
  }
  return round;
}

const Algorithm reduce_scatter_circulant = {
    .kind = Kind::reduce_scatter,
    .name = "circulant",
    .paper =
        "Traeff, Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms, "
        "arXiv:2410.14234, 2024",
    .summary = "Optimal in rounds, bytes and additions at once, for any number of ranks.",
    .rounds = "L",
    .bytes = "(p-1)/p",
    .reductions = "(p-1)/p",
    .restriction = "",
    .tree = {},
    .fits = any_p,
    .chunks = chunk_per_rank,
    .generate =
        [](Builder& b) { reduce_scatter_circulant_phase(b, 0, world(b), split(b.all(), b.p())); },
    .symmetry = rotation};

}  // namespace coll

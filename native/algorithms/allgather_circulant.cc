// SPDX-License-Identifier: Apache-2.0
// Traeff, "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms", arXiv:2410.14234, 2024:
// the reduce-scatter with its arrows turned round. The block sizes need not be equal.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

int allgather_circulant_phase(Builder& b, int round, const Team& team, const Blocks& blocks) {
  std::vector<int> sizes;  // n, ceil(n/2), ..., 2: how many blocks each round ends with
  for (int s = team.size(); s > 1; s = (s + 1) / 2) sizes.push_back(s);
  for (auto it = sizes.rbegin(); it != sizes.rend(); ++it, ++round) {
    const int s = *it, h = (s + 1) / 2;
    b.send(round, team.ahead(-h), cyclic(blocks, team.me, s - h));
    b.recv(round, team.ahead(h), cyclic(blocks, team.me + h, s - h));
  }
  return round;
}

const Algorithm allgather_circulant = {
    .kind = Kind::allgather,
    .name = "circulant",
    .paper =
        "Traeff, Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms, "
        "arXiv:2410.14234, 2024",
    .summary = "Optimal in rounds and bytes for any number of ranks.",
    .rounds = "L",
    .bytes = "(p-1)/p",
    .reductions = "0",
    .restriction = "",
    .tree = {.same_on_ranks = true, .same_in_vector = true},
    .fits = any_p,
    .chunks = chunk_per_rank,
    .generate =
        [](Builder& b) { allgather_circulant_phase(b, 0, world(b), split(b.all(), b.p())); },
    .symmetry = rotation};

}  // namespace coll

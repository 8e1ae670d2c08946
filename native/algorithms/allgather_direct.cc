// SPDX-License-Identifier: Apache-2.0
// Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004: the counterpart of
// the direct reduce-scatter. Everybody sends its block to everybody.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

int allgather_direct_phase(Builder& b, int round, const Team& team, const Blocks& blocks) {
  std::vector<int> others;
  for (int d = 1; d < team.size(); ++d) others.push_back(team.ahead(d));
  b.send(round, others, blocks[static_cast<std::size_t>(team.me)]);
  for (int d = 1; d < team.size(); ++d) {
    b.recv(round, team.ahead(d), cyclic(blocks, team.me + d, 1));
  }
  return round + 1;
}

const Algorithm allgather_direct = {
    .kind = Kind::allgather,
    .name = "direct",
    .paper = "Rabenseifner, Optimization of Collective Reduction Operations, ICCS 2004",
    .summary = "One round: everybody publishes its block once, everybody reads all.",
    .rounds = "p>1",
    .bytes = "(p-1)/p",
    .reductions = "0",
    .restriction = "",
    .tree = {.same_on_ranks = true, .same_in_vector = true},
    .fits = any_p,
    .chunks = chunk_per_rank,
    .generate = [](Builder& b) { allgather_direct_phase(b, 0, world(b), split(b.all(), b.p())); },
    .symmetry = rotation};

}  // namespace coll

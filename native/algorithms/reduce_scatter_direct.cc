// SPDX-License-Identifier: Apache-2.0
// Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004, names it as the
// limit of a fully connected network: everybody sends every block straight to its owner.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

int reduce_scatter_direct_phase(Builder& b, int round, const Team& team, const Blocks& blocks) {
  std::vector<int> order;
  for (int j = 0; j < team.size(); ++j) {
    if (j != team.me) b.send(round, team.at(j), blocks[static_cast<std::size_t>(j)]);
    order.push_back(j == team.me ? kSelf : team.at(j));
  }
  b.recv_reduce(round, order, blocks[static_cast<std::size_t>(team.me)], Shape::balanced);
  return round + 1;
}

const Algorithm reduce_scatter_direct = {
    .kind = Kind::reduce_scatter,
    .name = "direct",
    .paper = "Rabenseifner, Optimization of Collective Reduction Operations, ICCS 2004",
    .summary = "One round: every block goes straight to its owner, who adds all of them at once.",
    .rounds = "p>1",
    .bytes = "(p-1)/p",
    .reductions = "(p-1)/p",
    .restriction = "",
    .tree = {.same_in_vector = true, .rank_order = true, .one_fold = true, .canonical = any_p},
    .fits = any_p,
    .chunks = chunk_per_rank,
    .generate =
        [](Builder& b) { reduce_scatter_direct_phase(b, 0, world(b), split(b.all(), b.p())); },
    .symmetry = rotation};

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale",
// arXiv:2506.20252, 2025. Every block is summed up a binomial tree of its own, near members first,
// and in a round everybody sends those of all trees in one message: half of all to a neighbour, one
// block to the farthest. The paper sends fewer at a time, in more rounds, where its buffers are
// small; here sums wait in scratch, so all are sent ("full aggregation").
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

const Algorithm reduce_scatter_pat = {
    .kind = Kind::reduce_scatter,
    .name = "pat",
    .paper =
        "Jeaugey, PAT: a new algorithm for all-gather and reduce-scatter operations at scale, "
        "arXiv:2506.20252, 2025",
    .summary =
        "Half of the vector to a neighbour, one block to the farthest rank, for any number of "
        "ranks.",
    .rounds = "L",
    .bytes = "(p-1)/p",
    .reductions = "(p-1)/p",
    .restriction = "",
    .tree = {},
    .fits = any_p,
    .chunks = chunk_per_rank,
    .generate =
        [](Builder& b) {
          const Team team = world(b);
          const Blocks blocks = split(b.all(), b.p());
          int round = 0;
          for (int reach = 1; reach < b.p(); reach *= 2, ++round) {
            Chunks given, taken;
            for (int behind = 0; behind + reach < b.p(); behind += 2 * reach) {
              given.add(cyclic(blocks, team.me - reach - behind, 1));
              taken.add(cyclic(blocks, team.me - behind, 1));
            }
            b.send(round, team.ahead(-reach), given);
            b.recv_reduce(round, team.ahead(reach), taken);
          }
        },
    .symmetry = rotation};

}  // namespace coll

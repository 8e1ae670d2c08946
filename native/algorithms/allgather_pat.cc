// SPDX-License-Identifier: Apache-2.0
// Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale",
// arXiv:2506.20252, 2025. Every block goes down a binomial tree of its own, far members first, and
// in a round everybody sends those of all trees in one message: one block to the farthest, half of
// all to a neighbour. The paper sends fewer at a time, in more rounds, where its buffers are small;
// here a block waits in the output, so all are sent ("full aggregation").
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

const Algorithm allgather_pat = {
    .kind = Kind::allgather,
    .name = "pat",
    .paper =
        "Jeaugey, PAT: a new algorithm for all-gather and reduce-scatter operations at scale, "
        "arXiv:2506.20252, 2025",
    .summary =
        "One block to the farthest rank, half of the vector to a neighbour, for any number of "
        "ranks.",
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
          int round = 0;
          for (int reach = power_below(b.p() - 1); reach > 0; reach /= 2, ++round) {
            Chunks given, taken;
            for (int behind = 0; behind + reach < b.p(); behind += 2 * reach) {
              given.add(cyclic(blocks, team.me - behind, 1));
              taken.add(cyclic(blocks, team.me - reach - behind, 1));
            }
            b.send(round, team.ahead(reach), given);
            b.recv(round, team.ahead(-reach), taken);
          }
        },
    .symmetry = rotation};

}  // namespace coll

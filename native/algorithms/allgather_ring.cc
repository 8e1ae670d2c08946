// SPDX-License-Identifier: Apache-2.0
// Patarasuk & Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
// JPDC 69(2), 2009: its second half. Every block walks once round the ring.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

int allgather_ring_phase(Builder& b, int round, const Team& team, const Blocks& blocks) {
  const int n = team.size();
  for (int k = 0; k < n - 1; ++k, ++round) {
    b.send(round, team.ahead(1), cyclic(blocks, team.me - k, 1));
    b.recv(round, team.ahead(-1), cyclic(blocks, team.me - k - 1, 1));
  }
  return round;
}

const Algorithm allgather_ring = {
    .kind = Kind::allgather,
    .name = "ring",
    .paper = "Patarasuk & Yuan, Bandwidth optimal all-reduce algorithms, JPDC 69(2), 2009",
    .summary = "Every block walks once round a ring of neighbours.",
    .rounds = "p-1",
    .bytes = "(p-1)/p",
    .reductions = "0",
    .restriction = "",
    .tree = {.same_on_ranks = true, .same_in_vector = true},
    .fits = any_p,
    .chunks = chunk_per_rank,
    .generate = [](Builder& b) { allgather_ring_phase(b, 0, world(b), split(b.all(), b.p())); },
    .symmetry = rotation};

}  // namespace coll

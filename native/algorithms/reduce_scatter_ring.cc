// SPDX-License-Identifier: Apache-2.0
// Patarasuk & Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
// JPDC 69(2), 2009: its first half. The partial sum of block j starts at member j+1 and walks round
// the ring until it is complete at member j.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

int reduce_scatter_ring_phase(Builder& b, int round, const Team& team, const Blocks& blocks) {
  const int n = team.size();
  for (int k = 1; k < n; ++k, ++round) {
    b.send(round, team.ahead(1), cyclic(blocks, team.me - k, 1));
    b.recv_reduce(round, team.ahead(-1), cyclic(blocks, team.me - k - 1, 1));
  }
  return round;
}

const Algorithm reduce_scatter_ring = {
    .kind = Kind::reduce_scatter,
    .name = "ring",
    .paper = "Patarasuk & Yuan, Bandwidth optimal all-reduce algorithms, JPDC 69(2), 2009",
    .summary = "Partial sums walk once round a ring of neighbours.",
    .rounds = "p-1",
    .bytes = "(p-1)/p",
    .reductions = "(p-1)/p",
    .restriction = "",
    .tree = {},
    .fits = any_p,
    .chunks = chunk_per_rank,
    .generate =
        [](Builder& b) { reduce_scatter_ring_phase(b, 0, world(b), split(b.all(), b.p())); },
    .symmetry = rotation};

}  // namespace coll

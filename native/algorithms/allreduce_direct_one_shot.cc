// SPDX-License-Identifier: Apache-2.0
// Graham & Shipman, "MPI Support for Multi-core Architectures: Optimized Shared Memory
// Collectives", EuroPVM/MPI 2008: the whole vector is published once, read by all, and everybody
// adds in rank order. Fewest rounds, most bytes.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

void one_shot(Builder& b) {
  std::vector<int> others, order;
  for (int r = 0; r < b.p(); ++r) {
    if (r != b.rank()) others.push_back(r);
    order.push_back(r == b.rank() ? kSelf : r);
  }
  b.send(0, others, b.all());
  b.recv_reduce(0, order, b.all(), Shape::balanced);
}

const Algorithm allreduce_direct_one_shot = {
    .kind = Kind::allreduce,
    .name = "direct_one_shot",
    .paper =
        "Graham & Shipman, MPI Support for Multi-core Architectures: Optimized Shared Memory "
        "Collectives, EuroPVM/MPI 2008",
    .summary = "One round: everybody reads everybody's vector. Short vectors in shared memory.",
    .rounds = "p>1",
    .bytes = "p-1",
    .reductions = "p-1",
    .restriction = "",
    .tree = {.same_on_ranks = true,
             .same_in_vector = true,
             .rank_order = true,
             .one_fold = true,
             .canonical = any_p},
    .fits = any_p,
    .chunks = one_chunk,
    .generate = one_shot,
    .symmetry = rotation};

}  // namespace coll

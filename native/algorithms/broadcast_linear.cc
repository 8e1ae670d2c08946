// SPDX-License-Identifier: Apache-2.0
// Thakur, Rabenseifner & Gropp, "Optimization of Collective Communication Operations in MPICH",
// IJHPCA 19(1), 2005, where it is what the tree is measured by. On a network the root sends p - 1
// times; in shared memory it publishes once and all read, so nothing passes through a third rank.
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

const Algorithm broadcast_linear = {
    .kind = Kind::broadcast,
    .name = "linear",
    .paper =
        "Thakur, Rabenseifner & Gropp, Optimization of Collective Communication Operations in "
        "MPICH, IJHPCA 19(1), 2005",
    .summary = "The root sends to everybody; in shared memory it publishes once and all read.",
    .rounds = "p > 1",
    .bytes = "p - 1",
    .reductions = "0",
    .restriction = "",
    .tree = {.same_on_ranks = true, .same_in_vector = true},
    .fits = any_p,
    .chunks = one_chunk,
    .generate = [](Builder& b) {
      if (b.rank() != b.root()) return b.recv(0, b.root(), b.all());
      std::vector<int> others;
      for (int d = 1; d < b.p(); ++d) others.push_back((b.root() + d) % b.p());
      if (!others.empty()) b.send(0, others, b.all());
    }};

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Thakur, Rabenseifner & Gropp, "Optimization of Collective Communication Operations in MPICH",
// IJHPCA 19(1), 2005, where it is what the tree is measured by. The root folds all operands itself,
// in the order of ranks and in one go: for operations that do not commute, and for few ranks.
#include <numeric>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

const Algorithm reduce_direct = {
    .kind = Kind::reduce,
    .name = "direct",
    .paper =
        "Thakur, Rabenseifner & Gropp, Optimization of Collective Communication Operations in "
        "MPICH, IJHPCA 19(1), 2005",
    .summary = "Everybody sends to the root, which folds all operands at once, in rank order.",
    .rounds = "p > 1",
    .bytes = "p > 1",
    .reductions = "p - 1",
    .restriction = "",
    .tree = {.same_in_vector = true, .rank_order = true, .one_fold = true, .canonical = any_p},
    .fits = any_p,
    .chunks = one_chunk,
    .generate = [](Builder& b) {
      if (b.rank() != b.root()) return b.send(0, b.root(), b.all());
      std::vector<int> order(static_cast<std::size_t>(b.p()));
      std::iota(order.begin(), order.end(), 0);
      order[static_cast<std::size_t>(b.rank())] = kSelf;
      b.recv_reduce(0, order, b.all(), Shape::balanced);
    }};

}  // namespace coll

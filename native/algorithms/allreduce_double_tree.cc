// SPDX-License-Identifier: Apache-2.0
// Sanders, Speck & Traeff, "Two-tree Algorithms for Full Bandwidth Broadcast, Reduction and Scan",
// Parallel Computing 35(12), 2009. Half of the chunks go up and down either tree. Here all ranks
// are places of both, one tree's shifted by one against the other's: so operands stay in rank
// order.
#include <array>

#include "algorithms/algorithm.h"
#include "algorithms/tree.h"

namespace coll {

const Algorithm allreduce_double_tree = {
    .kind = Kind::allreduce,
    .name = "double_tree",
    .paper =
        "Sanders, Speck & Traeff, Two-tree Algorithms for Full Bandwidth Broadcast, "
        "Reduction and Scan, Parallel Computing 35(12), 2009",
    .summary = "Full bandwidth in O(log p) rounds, pipelined up and down two complementary trees.",
    .rounds = "(p > 1) * (2 * L + 7)",
    .bytes = "(p > 1) + (p > 2) / 2 + (p > 3) / 2",
    .reductions = "(p > 1) / 2 + (p > 2) / 2",
    .restriction = "",
    .tree = {.same_on_ranks = true, .rank_order = true},
    .fits = any_p,
    .chunks = two_pipelines,
    .generate = [](Builder& b) {
      const int p = b.p(), half = b.chunks() / 2;
      std::array<Tree, 2> trees = {
          inorder_tree(b.rank() + 1, 1, p + 1, [](int place) { return place - 1; }),
          inorder_tree(b.rank(), 0, p, [](int place) { return place; })};
      trees[0].chunks = trees[1].chunks = trees[1].first = half;
      pipe(b, trees, Way::up_and_down);
    }};

}  // namespace coll

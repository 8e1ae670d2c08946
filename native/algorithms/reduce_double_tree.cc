// SPDX-License-Identifier: Apache-2.0
// Sanders, Speck & Traeff, "Two-tree Algorithms for Full Bandwidth Broadcast, Reduction and Scan",
// Parallel Computing 35(12), 2009. Half of the chunks go up either tree.
#include "algorithms/algorithm.h"
#include "algorithms/tree.h"

namespace coll {

const Algorithm reduce_double_tree = {
    .kind = Kind::reduce,
    .name = "double_tree",
    .paper =
        "Sanders, Speck & Traeff, Two-tree Algorithms for Full Bandwidth Broadcast, "
        "Reduction and Scan, Parallel Computing 35(12), 2009",
    .summary = "Full bandwidth in O(log p) rounds: who adds up one half is a leaf for the other.",
    .rounds = "(p > 1) * (L + 7)",
    .bytes = "p > 1",
    .reductions = "p > 1",
    .restriction = "",
    .tree = {.same_on_ranks = true},
    .fits = any_p,
    .chunks = two_pipelines,
    .generate = [](Builder& b) { pipe(b, double_tree(b), Way::up); }};

}  // namespace coll

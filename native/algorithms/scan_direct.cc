// SPDX-License-Identifier: Apache-2.0
// The linear pattern of Pjesivac-Grbovic et al., "Performance Analysis of MPI Collective
// Operations", Cluster Computing 10(2), 2007: every operand goes straight to all ranks behind. Each
// folds those of the ranks up to it at once, in the canonical tree: for reproducible sums.
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

const Algorithm scan_direct = {
    .kind = Kind::scan,
    .name = "direct",
    .paper =
        "Pjesivac-Grbovic et al., Performance Analysis of MPI Collective Operations, "
        "Cluster Computing 10(2), 2007",
    .summary = "One round: every rank reads the operands of those before it, and folds them.",
    .rounds = "p>1",
    .bytes = "p-1",
    .reductions = "p-1",
    .restriction = "",
    .tree = {.same_in_vector = true, .rank_order = true, .one_fold = true, .canonical = any_p},
    .fits = any_p,
    .chunks = one_chunk,
    .generate = [](Builder& b) {
      std::vector<int> after, order;
      for (int r = b.rank() + 1; r < b.p(); ++r) after.push_back(r);
      for (int r = 0; r < b.rank(); ++r) order.push_back(r);
      order.push_back(kSelf);
      if (!after.empty()) b.send(0, after, b.all());
      if (b.rank() > 0) b.recv_reduce(0, order, b.all(), Shape::balanced);
    }};

}  // namespace coll

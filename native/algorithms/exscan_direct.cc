// SPDX-License-Identifier: Apache-2.0
// The linear pattern of Pjesivac-Grbovic et al., "Performance Analysis of MPI Collective
// Operations", Cluster Computing 10(2), 2007: every operand goes straight to all ranks behind. Each
// folds those of the ranks before it at once, in the canonical tree: for reproducible sums.
#include <numeric>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

const Algorithm exscan_direct = {
    .kind = Kind::exscan,
    .name = "direct",
    .paper =
        "Pjesivac-Grbovic et al., Performance Analysis of MPI Collective Operations, "
        "Cluster Computing 10(2), 2007",
    .summary = "One round: every rank reads the operands of those before it, and folds them.",
    .rounds = "p>1",
    .bytes = "p-1",
    .reductions = "(p > 1) * (p - 2)",
    .restriction = "",
    .tree = {.same_in_vector = true, .rank_order = true, .one_fold = true, .canonical = any_p},
    .fits = any_p,
    .chunks = one_chunk,
    .generate = [](Builder& b) {
      const int me = b.rank();
      std::vector<int> after(static_cast<std::size_t>(b.p() - 1 - me));
      std::iota(after.begin(), after.end(), me + 1);
      std::vector<int> before(static_cast<std::size_t>(me));
      std::iota(before.begin(), before.end(), 0);
      if (!after.empty()) b.send(0, after, b.all());
      if (me == 1) b.recv_into(Buffer::output, 0, 0, b.all());
      if (me > 1) b.recv_fold_into(Buffer::output, 0, before, b.all(), Shape::balanced);
    }};

}  // namespace coll

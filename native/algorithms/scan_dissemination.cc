// SPDX-License-Identifier: Apache-2.0
// Hillis & Steele, "Data Parallel Algorithms", CACM 29(12), 1986. Before round t rank r has the
// fold of the 2^t ranks that end with it, and gets that of the 2^t before.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

const Algorithm scan_dissemination = {
    .kind = Kind::scan,
    .name = "dissemination",
    .paper = "Hillis & Steele, Data Parallel Algorithms, CACM 29(12), 1986",
    .summary = "The number of operands that a rank has folded doubles in every round.",
    .rounds = "L",
    .bytes = "L",
    .reductions = "L",
    .restriction = "",
    .tree = {.same_in_vector = true, .rank_order = true},
    .fits = any_p,
    .chunks = one_chunk,
    .generate = [](Builder& b) {
      for (int round = 0, reach = 1; reach < b.p(); reach *= 2, ++round) {
        if (b.rank() + reach < b.p()) b.send(round, b.rank() + reach, b.all());
        if (b.rank() >= reach) b.recv_reduce(round, b.rank() - reach, b.all());
      }
    }};

}  // namespace coll

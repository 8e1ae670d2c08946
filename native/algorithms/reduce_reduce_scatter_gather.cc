// SPDX-License-Identifier: Apache-2.0
// Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004: reduce-scatter, then
// a binomial gather of the blocks to the root. With the circulant reduce-scatter for his recursive
// halving no number of ranks needs a case of its own.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

const Algorithm reduce_reduce_scatter_gather = {
    .kind = Kind::reduce,
    .name = "reduce_scatter_gather",
    .paper = "Rabenseifner, Optimization of Collective Reduction Operations, ICCS 2004",
    .summary = "Optimal bytes in 2 ceil(log2 p) rounds: reduce-scatter, then gather. Long vectors.",
    .rounds = "2*L",
    .bytes = "(p - 1) / p + (p > 1) * (P / 2 + (p > 3 * P / 2) * (p - 3 * P / 2)) / p",
    .reductions = "(p-1)/p",
    .restriction = "",
    .tree = {.same_on_ranks = true},
    .fits = any_p,
    .chunks = chunk_per_rank,
    .generate = [](Builder& b) {
      const Team team = rooted(b);
      const Blocks blocks = split(b.all(), b.p());
      const int round = reduce_scatter_circulant_phase(b, 0, team, blocks);
      gather_binomial_phase(b, round, team, blocks);
    }};

}  // namespace coll

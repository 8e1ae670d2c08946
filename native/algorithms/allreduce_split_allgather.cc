// SPDX-License-Identifier: Apache-2.0
// Renggli, Ashkboos, Aghagolzadeh, Alistarh & Hoefler, "SparCML: High-Performance Sparse
// Communication for Machine Learning", SC'19: every part of the vector straight to its owner, then
// an allgather in a logarithmic number of rounds, here that of Traeff, for any number of ranks.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

const Algorithm allreduce_split_allgather = {
    .kind = Kind::allreduce,
    .name = "split_allgather",
    .paper =
        "Renggli, Ashkboos, Aghagolzadeh, Alistarh & Hoefler, SparCML: High-Performance Sparse "
        "Communication for Machine Learning, SC, 2019",
    .summary = "One round to the owners of the parts, then a logarithmic allgather: optimal bytes.",
    .rounds = "(p>1)+L",
    .bytes = "2*(p-1)/p",
    .reductions = "(p-1)/p",
    .restriction = "",
    .tree = {.same_on_ranks = true,
             .same_in_vector = true,
             .rank_order = true,
             .one_fold = true,
             .canonical = any_p},
    .fits = any_p,
    .chunks = chunk_per_rank,
    .generate =
        [](Builder& b) {
          const Blocks blocks = split(b.all(), b.p());
          const int round = reduce_scatter_direct_phase(b, 0, world(b), blocks);
          allgather_circulant_phase(b, round, world(b), blocks);
        },
    .symmetry = rotation};

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Thakur, Rabenseifner & Gropp, "Optimization of Collective Communication Operations in MPICH",
// IJHPCA 19(1), 2005. In round k every rank sends the operand of the rank k places on straight to
// it.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

const Algorithm reduce_scatter_pairwise = {
    .kind = Kind::reduce_scatter,
    .name = "pairwise",
    .paper =
        "Thakur, Rabenseifner & Gropp, Optimization of Collective Communication Operations "
        "in MPICH, IJHPCA 19(1), 2005",
    .summary = "Every operand goes straight to its owner, one at a time; nothing is passed on.",
    .rounds = "p-1",
    .bytes = "(p-1)/p",
    .reductions = "(p-1)/p",
    .restriction = "",
    .tree = {},
    .fits = any_p,
    .chunks = chunk_per_rank,
    .generate =
        [](Builder& b) {
          const Team team = world(b);
          const Blocks blocks = split(b.all(), b.p());
          for (int k = 1; k < b.p(); ++k) {
            b.send(k - 1, team.ahead(k), cyclic(blocks, team.me + k, 1));
            b.recv_reduce(k - 1, team.ahead(-k), cyclic(blocks, team.me, 1));
          }
        },
    .symmetry = rotation};

}  // namespace coll

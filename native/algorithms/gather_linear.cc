// SPDX-License-Identifier: Apache-2.0
// Thakur, Rabenseifner & Gropp, "Optimization of Collective Communication Operations in MPICH",
// IJHPCA 19(1), 2005, where it is what the tree is measured by. All parts go straight to the root.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

const Algorithm gather_linear = {
    .kind = Kind::gather,
    .name = "linear",
    .paper =
        "Thakur, Rabenseifner & Gropp, Optimization of Collective Communication Operations in "
        "MPICH, IJHPCA 19(1), 2005",
    .summary = "Everybody hands its part to the root; every byte moves once.",
    .rounds = "p > 1",
    .bytes = "(p > 1) / p",
    .reductions = "0",
    .restriction = "",
    .tree = {},
    .fits = any_p,
    .chunks = chunk_per_rank,
    .generate = [](Builder& b) {
      if (b.rank() != b.root()) return b.send(0, b.root(), Chunks(b.rank(), 1));
      for (int r = 0; r < b.p(); ++r) {
        if (r != b.root()) b.recv(0, r, Chunks(r, 1));
      }
    }};

}  // namespace coll

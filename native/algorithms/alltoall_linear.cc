// SPDX-License-Identifier: Apache-2.0
// Thakur, Rabenseifner & Gropp, "Optimization of Collective Communication Operations in MPICH",
// IJHPCA 19(1), 2005, for messages of medium size: all sends and receives at once, each rank
// beginning with its right neighbour, so that nobody is everybody's first. In shared memory each
// rank publishes all its blocks and then reads those for it.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

const Algorithm alltoall_linear = {
    .kind = Kind::alltoall,
    .name = "linear",
    .paper =
        "Thakur, Rabenseifner & Gropp, Optimization of Collective Communication Operations in "
        "MPICH, IJHPCA 19(1), 2005",
    .summary = "One round: everybody sends every block at once; every byte moves once.",
    .rounds = "p > 1",
    .bytes = "(p - 1) / p",
    .reductions = "0",
    .restriction = "",
    .tree = {},
    .fits = any_p,
    .chunks = chunk_per_pair,
    .generate =
        [](Builder& b) {
          const int p = b.p(), me = b.rank();
          for (int d = 1; d < p; ++d) b.send(0, (me + d) % p, Chunks(me * p + (me + d) % p, 1));
          for (int d = 1; d < p; ++d)
            b.recv(0, (me + p - d) % p, Chunks((me + p - d) % p * p + me, 1));
        },
    .symmetry = rotation};

}  // namespace coll

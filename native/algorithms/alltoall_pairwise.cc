// SPDX-License-Identifier: Apache-2.0
// Thakur, Rabenseifner & Gropp, "Optimization of Collective Communication Operations in MPICH",
// IJHPCA 19(1), 2005. In round t two ranks whose sum is t modulo p exchange their blocks: since it
// is an exchange for any p, it also works in place.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

const Algorithm alltoall_pairwise = {
    .kind = Kind::alltoall,
    .name = "pairwise",
    .paper =
        "Thakur, Rabenseifner & Gropp, Optimization of Collective Communication Operations in "
        "MPICH, IJHPCA 19(1), 2005",
    .summary = "In every round each rank exchanges blocks with one other; every byte moves once.",
    .rounds = "p - 1 + (p > 2)",
    .bytes = "(p - 1) / p",
    .reductions = "0",
    .restriction = "",
    .tree = {},
    .fits = any_p,
    .chunks = chunk_per_pair,
    .generate = [](Builder& b) {
      const int p = b.p(), me = b.rank();
      for (int round = 0; round < p; ++round) {
        const int peer = (round - me + p) % p;
        if (peer == me) continue;
        b.send(round, peer, Chunks(me * p + peer, 1));
        b.recv(round, peer, Chunks(peer * p + me, 1));
      }
    }};

}  // namespace coll

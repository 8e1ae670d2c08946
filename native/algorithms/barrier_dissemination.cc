// SPDX-License-Identifier: Apache-2.0
// Hensgen, Finkel & Manber, "Two Algorithms for Barrier Synchronization", IJPP 17(1), 1988. What a
// rank has heard of (the fold is a union) doubles in every round.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

const Algorithm barrier_dissemination = {
    .kind = Kind::barrier,
    .name = "dissemination",
    .paper =
        "Hensgen, Finkel & Manber, Two Algorithms for Barrier Synchronization, IJPP 17(1), "
        "1988",
    .summary = "Everybody tells the rank 1, 2, 4, ... places on; no rank waits longer than needed.",
    .rounds = "L",
    .bytes = "",
    .reductions = "",
    .restriction = "",
    .tree = {},
    .fits = any_p,
    .chunks = one_chunk,
    .generate =
        [](Builder& b) {
          const int p = b.p();
          for (int round = 0, reach = 1; reach < p; reach *= 2, ++round) {
            b.send(round, (b.rank() + reach) % p, b.all());
            b.recv_reduce(round, (b.rank() - reach + p) % p, b.all());
          }
        },
    .symmetry = rotation};

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Thakur, Rabenseifner & Gropp, "Optimization of Collective Communication Operations in MPICH",
// IJHPCA 19(1), 2005. In round t everybody who has the vector sends it 2^t places on.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

const Algorithm broadcast_binomial = {
    .kind = Kind::broadcast,
    .name = "binomial",
    .paper =
        "Thakur, Rabenseifner & Gropp, Optimization of Collective Communication Operations in "
        "MPICH, IJHPCA 19(1), 2005",
    .summary = "The number of ranks that know doubles in every round.",
    .rounds = "L",
    .bytes = "L",
    .reductions = "0",
    .restriction = "",
    .tree = {.same_on_ranks = true, .same_in_vector = true},
    .fits = any_p,
    .chunks = one_chunk,
    .generate = [](Builder& b) {
      const int p = b.p(), me = (b.rank() - b.root() + p) % p;  // my place, counted from the root
      for (int round = 0, reach = 1; reach < p; reach *= 2, ++round) {
        if (me < reach && me + reach < p) b.send(round, (b.rank() + reach) % p, b.all());
        if (me >= reach && me < 2 * reach) b.recv(round, (b.rank() - reach + p) % p, b.all());
      }
    }};

}  // namespace coll

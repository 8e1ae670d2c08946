// SPDX-License-Identifier: Apache-2.0
// Thakur, Rabenseifner & Gropp, "Optimization of Collective Communication Operations in MPICH",
// IJHPCA 19(1), 2005. In round t everybody who has the vector sends it 2^t places on.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

int broadcast_binomial_phase(Builder& b, int round, const Team& team) {
  const int n = team.size(), me = team.me;
  for (int reach = 1; reach < n; reach *= 2, ++round) {
    if (me < reach && me + reach < n) b.send(round, team.ahead(reach), b.all());
    if (me >= reach && me < 2 * reach) b.recv(round, team.ahead(-reach), b.all());
  }
  return round;
}

const Algorithm broadcast_binomial = {
    .kind = Kind::broadcast,
    .name = "binomial",
    .paper =
        "Thakur, Rabenseifner & Gropp, Optimization of Collective Communication Operations "
        "in MPICH, IJHPCA 19(1), 2005",
    .summary = "The number of ranks that know doubles in every round.",
    .rounds = "L",
    .bytes = "L",
    .reductions = "0",
    .restriction = "",
    .tree = {.same_on_ranks = true, .same_in_vector = true},
    .fits = any_p,
    .chunks = one_chunk,
    .generate = [](Builder& b) { broadcast_binomial_phase(b, 0, rooted(b)); }};

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Thakur, Rabenseifner & Gropp, "Optimization of Collective Communication Operations in MPICH",
// IJHPCA 19(1), 2005: the binomial broadcast with its arrows turned round.
#include <array>

#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

int reduce_binomial_phase(Builder& b, int round, const Team& team) {
  const int n = team.size(), me = team.me;
  for (int reach = 1; reach < n; reach *= 2, ++round) {
    if (me % reach != 0) continue;  // has handed its sum on
    if ((me & reach) != 0) {
      b.send(round, team.ahead(-reach), b.all());
    } else if (me + reach < n) {
      b.recv_reduce(round, std::array{kSelf, team.ahead(reach)}, b.all());
    }
  }
  return round;
}

const Algorithm reduce_binomial = {
    .kind = Kind::reduce,
    .name = "binomial",
    .paper =
        "Thakur, Rabenseifner & Gropp, Optimization of Collective Communication Operations "
        "in MPICH, IJHPCA 19(1), 2005",
    .summary = "Neighbours merge first, then neighbours' neighbours, until the root has all.",
    .rounds = "L",
    .bytes = "p>1",
    .reductions = "L",
    .restriction = "",
    .tree = {.same_on_ranks = true, .same_in_vector = true},
    .fits = any_p,
    .chunks = one_chunk,
    .generate = [](Builder& b) { reduce_binomial_phase(b, 0, rooted(b)); }};

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Thakur, Rabenseifner & Gropp, "Optimization of Collective Communication Operations in MPICH",
// IJHPCA 19(1), 2005: the binomial broadcast with its arrows turned round.
#include <array>

#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

const Algorithm reduce_binomial = {
    .kind = Kind::reduce,
    .name = "binomial",
    .paper =
        "Thakur, Rabenseifner & Gropp, Optimization of Collective Communication Operations in "
        "MPICH, IJHPCA 19(1), 2005",
    .summary = "Neighbours merge first, then neighbours' neighbours, until the root has all.",
    .rounds = "L",
    .bytes = "p>1",
    .reductions = "L",
    .restriction = "",
    .tree = {.same_on_ranks = true, .same_in_vector = true},
    .fits = any_p,
    .chunks = one_chunk,
    .generate = [](Builder& b) {
      const int p = b.p(), me = (b.rank() - b.root() + p) % p;  // my place, counted from the root
      for (int round = 0, reach = 1; reach < p; reach *= 2, ++round) {
        if ((me & reach) != 0) {
          b.send(round, (b.rank() - reach + p) % p, b.all());
          return;
        }
        if (me + reach < p) {
          b.recv_reduce(round, std::array{kSelf, (b.rank() + reach) % p}, b.all());
        }
      }
    }};

}  // namespace coll

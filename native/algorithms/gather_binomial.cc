// SPDX-License-Identifier: Apache-2.0
// Chan, Heimlich, Purkayastha & van de Geijn, "Collective Communication: Theory, Practice, and
// Experience", CCPE 19(13), 2007. Neighbours join their parts first, then neighbours' neighbours,
// until the root has all.
#include <algorithm>

#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

int gather_binomial_phase(Builder& b, int round, const Team& team, const Blocks& blocks) {
  const int n = team.size(), me = team.me;
  for (int reach = 1; reach < n; reach *= 2, ++round) {
    if (me % reach != 0) continue;  // has handed its blocks on
    if ((me & reach) != 0) {
      b.send(round, team.ahead(-reach), cyclic(blocks, me, std::min(reach, n - me)));
    } else if (me + reach < n) {
      const int there = std::min(reach, n - me - reach);
      b.recv(round, team.ahead(reach), cyclic(blocks, me + reach, there));
    }
  }
  return round;
}

const Algorithm gather_binomial = {
    .kind = Kind::gather,
    .name = "binomial",
    .paper =
        "Chan, Heimlich, Purkayastha & van de Geijn, Collective Communication: Theory, "
        "Practice, and Experience, CCPE 19(13), 2007",
    .summary = "The parts that a rank passes on double in every round.",
    .rounds = "L",
    .bytes = "(p > 1) * (P / 2 + (p > 3 * P / 2) * (p - 3 * P / 2)) / p",
    .reductions = "0",
    .restriction = "",
    .tree = {},
    .fits = any_p,
    .chunks = chunk_per_rank,
    .generate = [](Builder& b) {
      const Team team = rooted(b);
      gather_binomial_phase(b, 0, team, parts_of(team));
    }};

}  // namespace coll

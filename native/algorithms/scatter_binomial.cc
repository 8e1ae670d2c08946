// SPDX-License-Identifier: Apache-2.0
// Chan, Heimlich, Purkayastha & van de Geijn, "Collective Communication: Theory, Practice, and
// Experience", CCPE 19(13), 2007. The gather with its arrows turned round: whoever has blocks for
// others hands on the farther half of them.
#include <algorithm>

#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

int scatter_binomial_phase(Builder& b, int round, const Team& team, const Blocks& blocks) {
  const int n = team.size(), me = team.me;
  for (int reach = power_below(std::max(n - 1, 1)); n > 1 && reach > 0; reach /= 2, ++round) {
    if (me % reach != 0) continue;  // has nothing yet
    if ((me & reach) != 0) {
      b.recv(round, team.ahead(-reach), cyclic(blocks, me, std::min(reach, n - me)));
    } else if (me + reach < n) {
      const int there = std::min(reach, n - me - reach);
      b.send(round, team.ahead(reach), cyclic(blocks, me + reach, there));
    }
  }
  return round;
}

const Algorithm scatter_binomial = {
    .kind = Kind::scatter,
    .name = "binomial",
    .paper =
        "Chan, Heimlich, Purkayastha & van de Geijn, Collective Communication: Theory, "
        "Practice, and Experience, CCPE 19(13), 2007",
    .summary = "The root hands out half of the parts at once, and so does everybody after it.",
    .rounds = "L",
    .bytes = "(p - 1) / p",
    .reductions = "0",
    .restriction = "",
    .tree = {},
    .fits = any_p,
    .chunks = chunk_per_rank,
    .generate = [](Builder& b) {
      const Team team = rooted(b);
      scatter_binomial_phase(b, 0, team, parts_of(team));
    }};

}  // namespace coll

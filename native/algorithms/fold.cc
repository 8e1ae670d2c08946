// SPDX-License-Identifier: Apache-2.0
// Rabenseifner & Traeff, "More Efficient Reduction Algorithms for Non-Power-of-Two Number of
// Processors in Message-Passing Parallel Systems", EuroPVM/MPI 2004: the folding they improve on.
#include "algorithms/phases.h"

namespace coll {

int fold_to_power_of_two(Builder& b, int round,
                         const std::function<int(Builder&, int, const Team&)>& body) {
  const int powers = power_below(b.p()), extra = b.p() - powers, rank = b.rank();
  const bool paired = rank < 2 * extra, idle = paired && rank % 2 == 0;
  const int first = extra > 0 ? round + 1 : round;

  Team team;
  for (int i = 0; i < powers; ++i) team.ranks.push_back(i < extra ? 2 * i + 1 : i + extra);
  team.me = paired ? rank / 2 : rank - extra;

  if (idle) {
    b.send(round, rank + 1, b.all());
    // The idle half must know when the others are done: rounds are the same on all ranks.
    Builder shadow(Layout(Kind::allreduce, b.p(), 0, b.chunks()), rank + 1);
    const int last = body(shadow, first, team);
    b.recv(last, rank + 1, b.all());
    return last + 1;
  }
  if (paired) b.recv_reduce(round, rank - 1, b.all());
  const int last = body(b, first, team);
  if (paired) b.send(last, rank - 1, b.all());
  return extra > 0 ? last + 1 : last;
}

}  // namespace coll

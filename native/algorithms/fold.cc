// SPDX-License-Identifier: Apache-2.0
// Rabenseifner & Traeff, "More Efficient Reduction Algorithms for Non-Power-of-Two Number of
// Processors in Message-Passing Parallel Systems", EuroPVM/MPI 2004: the folding they improve on.
#include "algorithms/phases.h"

namespace coll {

void fold_neighbours(Builder& b, int members, int rounds, const Chunks& back,
                     const std::function<void(int round, const Team& team)>& body) {
  const int extra = b.p() - members, rank = b.rank(), first = extra > 0 ? 1 : 0;
  const bool paired = rank < 2 * extra;
  if (paired && rank % 2 == 0) {
    b.send(0, rank + 1, b.all());
    b.recv(first + rounds, rank + 1, back);
    return;
  }
  Team team;
  for (int i = 0; i < members; ++i) team.ranks.push_back(i < extra ? 2 * i + 1 : i + extra);
  team.me = paired ? rank / 2 : rank - extra;
  if (paired) b.recv_reduce(0, rank - 1, b.all());
  body(first, team);
  if (paired) b.send(first + rounds, rank - 1, back);
}

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Barnett, Shuler, van de Geijn, Gupta, Payne & Watts, "Interprocessor Collective Communication
// Library (InterCom)", SHPCC 1994: binomial scatter, then allgather round a ring. As in Zhou et
// al., "A Bandwidth-saving Optimization for MPI Broadcast", arXiv:1603.06809, 2016, no rank gets
// again what the scatter gave it.
#include <algorithm>

#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {
namespace {

// How many blocks the scatter leaves with a member: its own and those after it.
int scattered(int member, int n) {
  return member == 0 ? n : std::min(member & -member, n - member);
}

}  // namespace

const Algorithm broadcast_scatter_allgather = {
    .kind = Kind::broadcast,
    .name = "scatter_allgather",
    .paper =
        "Barnett, Shuler, van de Geijn, Gupta, Payne & Watts, Interprocessor Collective "
        "Communication Library, SHPCC 1994",
    .summary = "The root sends every byte about twice, whatever the number of ranks. Long vectors.",
    .rounds = "(p > 1) * (L + p - 1)",
    .bytes = "2*(p-1)/p",
    .reductions = "0",
    .restriction = "",
    .tree = {.same_on_ranks = true, .same_in_vector = true},
    .fits = any_p,
    .chunks = chunk_per_rank,
    .generate = [](Builder& b) {
      const Team team = rooted(b);
      const Blocks blocks = split(b.all(), b.p());
      const int n = team.size(), next = (team.me + 1) % n;
      int round = scatter_binomial_phase(b, 0, team, blocks);
      for (int k = 0; k < n - 1; ++k, ++round) {
        if (k < n - scattered(next, n)) {
          b.send(round, team.ahead(1), cyclic(blocks, team.me - k, 1));
        }
        if (k < n - scattered(team.me, n)) {
          b.recv(round, team.ahead(-1), cyclic(blocks, team.me - k - 1, 1));
        }
      }
    }};

}  // namespace coll

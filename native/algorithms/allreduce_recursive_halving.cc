// SPDX-License-Identifier: Apache-2.0
// Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004. Vector halving with
// distance doubling, then vector doubling with distance halving. Near partners first: so the
// summation tree is that of recursive doubling, in rank order.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {
namespace {

void halve_and_double(Builder& b, int round, const Team& team) {
  std::vector<Chunks> given;  // what the partner of each distance was left with
  Chunks mine = b.all();
  for (int distance = 1; distance < team.size(); distance *= 2, ++round) {
    const int partner = team.me ^ distance, upper = (team.me & distance) != 0 ? 1 : 0;
    given.push_back(mine.part(1 - upper, 2));
    mine = mine.part(upper, 2);
    b.send(round, team.at(partner), given.back());
    b.recv_reduce(round, team.at(partner), mine);
  }
  for (int distance = team.size() / 2; distance >= 1; distance /= 2, ++round) {
    const int partner = team.me ^ distance;
    b.send(round, team.at(partner), mine);
    b.recv(round, team.at(partner), given.back());
    const bool upper = (team.me & distance) != 0;
    Chunks joined = upper ? given.back() : mine;
    mine = joined.add(upper ? mine : given.back());
    given.pop_back();
  }
}

}  // namespace

const Algorithm allreduce_recursive_halving = {
    .kind = Kind::allreduce,
    .name = "recursive_halving",
    .paper = "Rabenseifner, Optimization of Collective Reduction Operations, ICCS 2004",
    .summary = "Optimal bytes in 2 log2 p rounds where p is a power of two; else pairs fold first.",
    .rounds = "2*K+2*(p>P)",
    .bytes = "2*(P-1)/P+(p>P)",
    .reductions = "(P-1)/P+(p>P)",
    .restriction = "",
    .tree = {.same_on_ranks = true,
             .same_in_vector = true,
             .rank_order = true,
             .canonical = ones_then_zeros},
    .fits = any_p,
    .chunks = power_below,
    .generate =
        [](Builder& b) {
          const int members = power_below(b.p());
          fold_neighbours(b, members, 2 * floor_log2(members), b.all(),
                          [&](int round, const Team& team) { halve_and_double(b, round, team); });
        },
    .symmetry = flipped_bits};

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// End, Yahyapour, Simmendinger & Alrutz, "Adaption of the n-way Dissemination Algorithm for GASPI
// Split-Phase Allreduce", INFOCOMP 2015. In each round a rank hears from n others, each of which
// knows the sum of n + 1 times as many ranks as before. There a rank's sums end at the rank itself,
// so that each rank adds in an order of its own. Here they are sums of groups, n + 1 of which are
// the group of the next round, of sizes that differ by one where they must: as few rounds, for any
// number of ranks, and the same bits on all; for that a rank of a smaller group is heard by two of
// a larger.
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {
namespace {

constexpr int kWays = 4;  // n + 1

// The group's parts sum among themselves in the rounds before, then with each other in this one.
void disseminate(Builder& b, Interval group, int round) {
  if (group.size() <= 1) return;
  std::vector<Interval> parts;
  Interval mine;
  for (int i = 0; i < kWays; ++i) {
    const Interval part = {group.low + group.size() * i / kWays,
                           group.low + group.size() * (i + 1) / kWays};
    if (part.size() > 0) parts.push_back(part);
    if (part.low <= b.rank() && b.rank() < part.high) mine = part;
  }
  disseminate(b, mine, round - 1);
  const int place = b.rank() - mine.low;
  std::vector<int> to, order;
  for (const Interval& part : parts) {
    if (part == mine) {
      order.push_back(kSelf);
      continue;
    }
    order.push_back(part.low + place % part.size());
    for (int q = place; q < part.size(); q += mine.size()) to.push_back(part.low + q);
  }
  b.send(round, to, b.all());
  b.recv_reduce(round, order, b.all(), Shape::balanced);
}

}  // namespace

const Algorithm allreduce_dissemination = {
    .kind = Kind::allreduce,
    .name = "dissemination",
    .paper =
        "End, Yahyapour, Simmendinger & Alrutz, Adaption of the n-way Dissemination Algorithm "
        "for GASPI Split-Phase Allreduce, INFOCOMP 2015",
    .summary =
        "Fewest rounds with three messages each, for any p: what a rank knows grows fourfold.",
    .rounds = "(p>1)+(p>4)+(p>16)+(p>64)+(p>256)+(p>1024)+(p>4096)",
    .bytes = "",
    .reductions = "",
    .restriction = "",
    .tree = {.same_on_ranks = true,
             .same_in_vector = true,
             .rank_order = true,
             .canonical = [](int p) { return p <= kWays || power_of_two(p); }},
    .fits = any_p,
    .chunks = one_chunk,
    .generate = [](Builder& b) {
      int rounds = 0;
      for (int reach = 1; reach < b.p(); reach *= kWays) ++rounds;
      disseminate(b, {0, b.p()}, rounds - 1);
    }};

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Ruefenacht, Bull & Booth, "Generalisation of Recursive Doubling for AllReduce: Now with
// Simulation", Parallel Computing 69, 2017. Groups of f ranks exchange whole vectors, then groups
// of f such groups, and so on: the number of ranks is the product of the factors. Ranks that leave
// a large prime factor are folded into their neighbours.
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {
namespace {

// The factors, small enough for a round each; none where others would be left.
std::vector<int> factors_of(int n) {
  std::vector<int> factors;
  for (const int f : {4, 2, 3, 5, 7}) {
    for (; n % f == 0; n /= f) factors.push_back(f);
  }
  return n == 1 ? factors : std::vector<int>{};
}

// All factors but the last are powers of two: groups of such sizes make the canonical tree.
bool one_odd_factor(int p) { return p / (p & -p) <= 7; }

// The largest number <= p that is a product of such factors.
int smooth_below(int p) {
  while (p > 1 && factors_of(p).empty()) --p;
  return p;
}

}  // namespace

const Algorithm allreduce_recursive_multiplying = {
    .kind = Kind::allreduce,
    .name = "recursive_multiplying",
    .paper =
        "Ruefenacht, Bull & Booth, Generalisation of Recursive Doubling for AllReduce: Now "
        "with Simulation, Parallel Computing 69, 2017",
    .summary = "Recursive doubling in groups of up to seven: fewer rounds where messages overlap.",
    .rounds = "",
    .bytes = "",
    .reductions = "",
    .restriction = "",
    .tree = {.same_on_ranks = true,
             .same_in_vector = true,
             .rank_order = true,
             .canonical = one_odd_factor},
    .fits = any_p,
    .chunks = one_chunk,
    .generate = [](Builder& b) {
      const int members = smooth_below(b.p());
      const std::vector<int> factors = factors_of(members);
      const int rounds = static_cast<int>(factors.size());
      fold_neighbours(b, members, rounds, b.all(), [&](int round, const Team& team) {
        int distance = 1;  // between neighbours of a group
        for (const int factor : factors) {
          const int place = team.me / distance % factor, first = team.me - place * distance;
          std::vector<int> others, order;
          for (int i = 0; i < factor; ++i) {
            const int peer = team.at(first + i * distance);
            if (i != place) others.push_back(peer);
            order.push_back(i == place ? kSelf : peer);
          }
          b.send(round, others, b.all());
          b.recv_reduce(round++, order, b.all(), Shape::balanced);
          distance *= factor;
        }
      });
    }};

}  // namespace coll

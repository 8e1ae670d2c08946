// SPDX-License-Identifier: Apache-2.0
// What the rules choose for ranks with a core each, of which no machine was there to measure many:
// by the cost model it is nowhere far from the best plan there is.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "check.h"
#include "select/choose.h"
#include "select/rivals.h"
#include "topology/machine_costs.h"

using namespace coll;

namespace {

constexpr double kFarOff = 1.45;  // times the best prediction

double seconds_of(const Algorithm& algorithm, int ranks, const Choice& choice, std::size_t bytes) {
  return predicted_seconds(make_schedule(algorithm, ranks), choice, bytes, usual_costs());
}

std::vector<Choice> parameters(std::size_t bytes) {
  if (bytes <= kInlineBytes) return {{.mode = Mode::inlined, .lag = 0, .tile_bytes = 0}};
  return {{.mode = Mode::staged, .lag = 1, .tile_bytes = 64 << 10},
          {.mode = Mode::staged, .lag = 1, .tile_bytes = 256 << 10}};
}

double best_seconds(Kind kind, int ranks, std::size_t bytes) {
  double best = std::numeric_limits<double>::infinity();
  for (const Algorithm* algorithm : algorithms()) {
    if (algorithm->kind != kind || !algorithm->fits(ranks)) continue;
    for (const Choice& choice : parameters(bytes)) {
      best = std::min(best, seconds_of(*algorithm, ranks, choice, bytes));
    }
  }
  return best;
}

void expect_near_the_best(Kind kind) {
  for (const int ranks : {3, 4, 5, 8, 12}) {
    for (const std::size_t bytes :
         {8, 512, 1024, 2048, 4096, 6000, 16 << 10, 100'000, 1 << 20, 8 << 20}) {
      const Choice rule = choose(kind, ranks, bytes).near;
      const Algorithm& algorithm = *algorithms()[static_cast<std::size_t>(rule.algorithm)];
      const double ratio =
          seconds_of(algorithm, ranks, rule, bytes) / best_seconds(kind, ranks, bytes);
      if (ratio > kFarOff) {
        std::printf("%d ranks, %zu bytes: %s takes %.2f of the best\n", ranks, bytes,
                    algorithm.name, ratio);
      }
      CHECK(ratio <= kFarOff);
    }
  }
}

}  // namespace

TEST(reduces_are_predicted_near_the_best) { expect_near_the_best(Kind::reduce); }
TEST(allreduces_are_predicted_near_the_best) { expect_near_the_best(Kind::allreduce); }
TEST(reduce_scatters_are_predicted_near_the_best) { expect_near_the_best(Kind::reduce_scatter); }
TEST(allgathers_are_predicted_near_the_best) { expect_near_the_best(Kind::allgather); }
TEST(broadcasts_are_predicted_near_the_best) { expect_near_the_best(Kind::broadcast); }
TEST(alltoalls_are_predicted_near_the_best) { expect_near_the_best(Kind::alltoall); }

// SPDX-License-Identifier: Apache-2.0
// Predicted times of plans in shared memory: closed forms where there are any, and what must hold
// of all algorithms.
#include "simulate/memory_time.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "base/error.h"
#include "check.h"
#include "instrumented.h"
#include "plan/lower.h"

using namespace coll;

namespace {

constexpr double kKiB = 1024, kMiB = kKiB * kKiB;

const Algorithm& algorithm(Kind kind, const char* name) {
  return *algorithms()[static_cast<std::size_t>(find_algorithm(kind, name))];
}

Plan plan_of(Kind kind, const char* name, int p, Mode mode = Mode::staged, int lag = 0) {
  return lower(make_schedule(algorithm(kind, name), p, 0), {.mode = mode, .lag = lag});
}

CostCurve same(double seconds_per_byte) {
  return {
      .bytes = {1, 2, 3, 4},
      .seconds_per_byte = {seconds_per_byte, seconds_per_byte, seconds_per_byte, seconds_per_byte}};
}

// Each kind of access costs a power of ten of its own, so sums tell what was done.
MachineCosts powers() {
  MachineCosts costs;
  costs.read = same(1e-9);
  costs.write = same(1e-8);
  costs.stream = same(1e-4);
  for (CoreCosts& between : costs.between) {
    between.read = same(1e-7);
    between.write = same(1e-6);
    between.streamed_read = same(1e-5);
    between.streamed_write = same(1e-4);
  }
  return costs;
}

bool close(double a, double b, double tolerance = 1e-9) {
  return std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

}  // namespace

TEST(two_ranks_one_shot_by_hand) {
  // Each rank writes its vector into its stage and folds its own and the other's into its output.
  const Plan plan = plan_of(Kind::allreduce, "direct_one_shot", 2);
  const double n = 1000;
  const MachineCosts costs = powers();
  const double moved = n * (1e-9 + 1e-6) + n * (1e-9 + 1e-7 + 1e-8);
  CHECK(close(memory_seconds(plan, costs, {.bytes = n}), moved));
}

// Stages go around the caches where that is clearly faster for who writes them.
TEST(stages_go_around_the_caches_where_ranks_would_find_that_faster) {
  const Plan ahead = plan_of(Kind::allreduce, "direct_one_shot", 2, Mode::staged, 1);
  const double n = 8192;
  MachineCosts costs = powers();
  const double moved = n * (1e-9 + 1e-6) + n * (1e-9 + 1e-7 + 1e-8);
  CHECK(close(memory_seconds(ahead, costs, {.bytes = n, .streams = true}), moved));
  for (CoreCosts& between : costs.between) between.write = between.streamed_write.scaled(2);
  const double around = n * (1e-9 + 1e-4) + n * (1e-9 + 1e-5 + 1e-8);
  CHECK(close(memory_seconds(ahead, costs, {.bytes = n, .streams = true}), around));
  const double plain = n * (1e-9 + 2e-4) + n * (1e-9 + 1e-7 + 1e-8);
  CHECK(close(memory_seconds(ahead, costs, {.bytes = n}), plain));
  // Without lag, one tile is a list of steps, of which none goes around the caches.
  const Plan steps = plan_of(Kind::allreduce, "direct_one_shot", 2);
  CHECK(close(memory_seconds(steps, costs, {.bytes = n, .streams = true}), plain));
}

// A broadcast's root has its result where its vector lies.
TEST(what_is_in_its_place_is_not_moved) {
  const Plan plan = plan_of(Kind::broadcast, "linear", 2);
  MachineCosts costs;
  costs.write = powers().write;
  const double n = 1000;
  CHECK(close(memory_seconds(plan, costs, {.bytes = n, .alone = true}), n * 1e-8));
}

TEST(flags_ops_and_calls_are_paid_for) {
  const Plan plan = plan_of(Kind::allreduce, "direct_one_shot", 2);
  MachineCosts costs;
  costs.between[0].flag = 1.0;
  const double flags = memory_seconds(plan, costs, {.bytes = 8});
  // The other's data: its flag, and then a line of it.
  CHECK(close(flags, 2.0));
  CHECK(close(memory_seconds(plan, costs, {.bytes = 8, .agrees = true}), 3.0));
  costs.op = 0.25;
  CHECK(close(memory_seconds(plan, costs, {.bytes = 8}), 2.5));
  costs.call = 10;
  CHECK(close(memory_seconds(plan, costs, {.bytes = 8}), 12.5));
  // With the flag in its last line the message is one way only.
  const Plan inlined = plan_of(Kind::allreduce, "direct_one_shot", 2, Mode::inlined);
  CHECK(close(memory_seconds(inlined, costs, {.bytes = 8}), 11.5));
}

TEST(far_cores_cost_what_they_cost) {
  const Plan plan = plan_of(Kind::allreduce, "ring", 4);
  MachineCosts costs = powers();
  costs.between[1].read = same(2e-7);
  costs.between[1].write = same(2e-6);
  const double near = memory_seconds(plan, costs, {.bytes = kMiB});
  const double far = memory_seconds(plan, costs, {.bytes = kMiB, .placement = Placement::far});
  CHECK(far > 1.5 * near && far < 2 * near);
}

TEST(a_ring_passes_on_p_minus_1_chunks_twice) {
  constexpr int kRanks = 4;
  const Plan plan = plan_of(Kind::allreduce, "ring", kRanks);
  MachineCosts costs;
  for (CoreCosts& between : costs.between) between.write = same(1e-9);
  const double chunk = kMiB / kRanks;
  // Of 6 messages each is written once.
  const double found = memory_seconds(plan, costs, {.bytes = kMiB, .slot_bytes = 64 * kMiB});
  CHECK(close(found, 2 * (kRanks - 1) * chunk * 1e-9));
}

TEST(a_call_alone_lasts_until_its_last_rank) {
  // Back to back the root of a chain is calls ahead of the last rank.
  const Plan plan = plan_of(Kind::broadcast, "chain", 4, Mode::staged, 1);
  const MachineCosts costs = powers();
  const double stream = memory_seconds(plan, costs, {.bytes = kKiB});
  const double alone = memory_seconds(plan, costs, {.bytes = kKiB, .alone = true});
  CHECK(alone > 1.2 * stream);
}

TEST(ranks_of_one_core_take_turns) {
  const Plan plan = plan_of(Kind::allreduce, "direct_one_shot", 4);
  MachineCosts costs = powers();
  const double apart = memory_seconds(plan, costs, {.bytes = kKiB});
  costs.cores = 1;
  CHECK(close(memory_seconds(plan, costs, {.bytes = kKiB}), 4 * apart, 0.08));
  costs.cores = 2;
  CHECK(close(memory_seconds(plan, costs, {.bytes = kKiB}), 2 * apart, 0.08));
  const double before = memory_seconds(plan, costs, {.bytes = kKiB});
  costs.turn = 1;
  CHECK(memory_seconds(plan, costs, {.bytes = kKiB}) >= before + 2);
}

TEST(data_beyond_a_cache_costs_more) {
  const Plan plan = plan_of(Kind::allreduce, "direct_one_shot", 2, Mode::staged, 1);
  MachineCosts costs = powers();
  costs.read = {.bytes = {kKiB, kMiB, 2 * kMiB, 4 * kMiB}, .seconds_per_byte = {1, 1, 10, 10}};
  const auto per_byte = [&](double bytes) {
    return memory_seconds(plan, costs, {.bytes = bytes, .tile_bytes = 64 * kKiB}) / bytes;
  };
  // What is staged tile by tile is still in the cache when it is folded.
  CHECK(close(per_byte(64 * kKiB), 2, 0.01));
  CHECK(close(per_byte(64 * kMiB), 11, 0.01));
}

TEST(large_results_go_around_the_caches_where_that_is_faster) {
  const Plan plan = plan_of(Kind::allreduce, "direct_one_shot", 2);
  MachineCosts costs;
  costs.write = same(4e-9);
  costs.stream = same(1e-9);
  CHECK(close(memory_seconds(plan, costs, {.bytes = kMiB}), 4e-9 * kMiB));
  CHECK(close(memory_seconds(plan, costs, {.bytes = 8 * kMiB}), 8e-9 * kMiB));
}

TEST(many_tiles_are_those_of_the_middle) {
  const Plan plan = plan_of(Kind::allreduce, "direct_two_shot", 3, Mode::staged, 1);
  const MachineCosts costs = usual_costs();
  const auto seconds = [&](double tiles) {
    return memory_seconds(plan, costs, {.bytes = tiles * 3 * 16384, .tile_bytes = 4 * 16384});
  };
  const double step = seconds(2049) - seconds(2048);
  CHECK(close(step, seconds(2048) / 2048, 0.05));
  CHECK(seconds(100) > seconds(40));
}

TEST(all_plans_take_a_time_and_more_of_more_bytes) {
  const MachineCosts costs = usual_costs();
  const int most = check::kShort ? 5 : 8;
  std::vector<double> lengths = {0.0, 4 * kKiB, 256 * kKiB, 4 * kMiB};
  if (!check::kShort) lengths.push_back(64 * kMiB);
  for (const Algorithm* a : algorithms()) {
    for (int p = 1; p <= most; ++p) {
      if (!a->fits(p)) continue;
      const Schedule schedule = make_schedule(*a, p, 0);
      for (const Mode mode : {Mode::staged, Mode::inlined, Mode::pull, Mode::push}) {
        const Plan plan = lower(schedule, {.mode = mode, .lag = mode == Mode::inlined ? 0 : 1});
        double before = 0;
        for (const double bytes : lengths) {
          const double found =
              memory_seconds(plan, costs, {.bytes = bytes, .tile_bytes = 256 * kKiB});
          CHECK(std::isfinite(found) && found > 0);
          CHECK(found >= 0.999 * before);
          before = found;
        }
      }
    }
  }
}

TEST(curves_are_lines_over_logarithms) {
  const CostCurve curve{.bytes = {10, 100, 1000, 10000}, .seconds_per_byte = {1, 2, 4, 8}};
  CHECK(curve.at(1) == 1 && curve.at(10) == 1 && curve.at(1e6) == 8);
  CHECK(close(curve.at(std::sqrt(1000.0)), 1.5));
  CHECK(close(curve.at(1000), 4));
}

TEST(costs_that_are_none_are_refused) {
  check_costs(usual_costs());
  MachineCosts bad = usual_costs();
  bad.between[1].flag = std::numeric_limits<double>::quiet_NaN();
  CHECK(std::string(thrown<Error>([&] { check_costs(bad); }).what()).find("flag is nan") !=
        std::string::npos);
  bad = usual_costs();
  std::swap(bad.read.bytes[0], bad.read.bytes[1]);
  CHECK(std::string(thrown<Error>([&] { check_costs(bad); }).what()).find("ascend") !=
        std::string::npos);
}

TEST(a_placement_that_was_not_seen_is_in_proportion) {
  MachineCosts costs = usual_costs();
  const MachineCosts usual = usual_costs();
  auto& near = costs.between[0];
  near.flag *= 2;
  near.read = near.read.scaled(3);
  derive_other_placement(costs, Placement::near);
  CHECK(close(costs.between[1].flag, 2 * usual.between[1].flag));
  CHECK(close(costs.between[1].read.at(kMiB), 3 * usual.between[1].read.at(kMiB)));
  CHECK(close(costs.between[1].write.at(kKiB), usual.between[1].write.at(kKiB)));
}

// SPDX-License-Identifier: Apache-2.0
// Proves every algorithm of the table: its schedules for every number of ranks to 64, every root,
// in place and out of place, and samples to 1024 ranks; its plans in every mode, depth and lag. Of
// more than 6 ranks configurations take turns, unless ALL_CASES is set.
#include <array>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <set>
#include <string>
#include <vector>

#include "all_cores.h"
#include "check.h"
#include "communicator/claims_of.h"
#include "instrumented.h"
#include "plan/lower.h"
#include "plan/reach.h"
#include "prove/plan_proof.h"
#include "prove/schedule_proof.h"
#include "transport/segment.h"

using namespace coll;

namespace {

constexpr int kMostRanks = check::kShort ? 6 : 64;
constexpr int kMostRanksInAllConfigurations = check::kShort ? 3 : 16;
constexpr int kMostRanksInAllModes = 32;   // of more, in two of the four by turns
constexpr int kMostRanksWithAllRoots = 8;  // of plans, whose proofs cost more
constexpr int kMostRanksInFull = 6;  // of more, a plain run takes a part of the configurations
constexpr int kDepths = 4;
constexpr int kInlineDepth = SegmentShape{}.slots(true);
constexpr int kLags = 2;

// Whether a configuration is one of a plain run: each `parts`-th is, which one the turn tells.
bool has_turn(int p, int turn, int parts) {
  static const bool all = check::all_cases();
  return all || p <= kMostRanksInFull || turn % parts == 0;
}

double seconds_used() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void expect_proved(const Report& report, const std::string& what) {
  if (!report.proved) check::fail(what + ": " + report.message);
}

std::string name_of(const Algorithm& a, int p, int root, bool in_place) {
  return std::string(a.name) + " of kind " + std::to_string(static_cast<int>(a.kind)) +
         ", p = " + std::to_string(p) + ", root " + std::to_string(root) +
         (in_place ? ", in place" : ", out of place");
}

// Calls f(algorithm, p, root) for every algorithm that is defined for p, and every root it has; of
// more than so many ranks, the first, the last, and two between.
template <class F>
void each_case(int p, int most_with_all_roots, F&& f) {
  std::set<int> roots = {0, p / 3, p / 2, p - 1};
  for (int root = 0; root < p && p <= most_with_all_roots; ++root) roots.insert(root);
  for (const Algorithm* a : algorithms()) {
    if (!a->fits(p)) continue;
    const bool rooted = Layout(a->kind, p, 0, a->chunks(p)).rooted();
    for (const int root : rooted ? roots : std::set<int>{0}) f(*a, p, root);
  }
}

// Of many ranks one placing, in turns: the time goes into the last few samples.
bool left_out(int p, int most_in_both, bool in_place) {
  return p > most_in_both && in_place != (p % 2 == 0);
}

int prove_schedule(const Algorithm& a, int p, int root) {
  const Schedule schedule = make_schedule(a, p, root);
  int proofs = 0;
  for (const bool in_place : {false, true}) {
    if (left_out(p, 256, in_place)) continue;
    expect_proved(prove(schedule, in_place, claims_of(a, p)), name_of(a, p, root, in_place));
    ++proofs;
  }
  return proofs;
}

int prove_plan(const Algorithm& a, const Schedule& schedule, const Lowering& how) {
  const Plan plan = lower(schedule, how);
  const auto tiles = usual_tiles(plan);
  const Claims claims = claims_of(a, schedule.p);
  int proofs = 0;
  for (const bool in_place : {false, true}) {
    if (how.apart ? in_place : left_out(schedule.p, 32, in_place)) continue;
    ++proofs;
    expect_proved(prove(plan, in_place, tiles, kAllChecks, claims),
                  name_of(a, schedule.p, schedule.root, in_place) + ", mode " +
                      std::to_string(static_cast<int>(how.mode)) + ", depth " +
                      std::to_string(how.depth) + ", lag " + std::to_string(how.lag) +
                      (how.stores == Stores::ordinary ? "" : ", non-temporal stores"));
  }
  return proofs;
}

void print(const char* what, int proofs, double since) {
  std::printf("%s: %d proofs in %.1f s\n", what, proofs, seconds_used() - since);
}

TEST(schedules_of_all_ranks_and_roots) {
  const double start = seconds_used();
  std::atomic<int> proofs = 0;
  on_all_cores(1, kMostRanks, [&](int p) {
    each_case(p, kMostRanks,
              [&](const Algorithm& a, int, int root) { proofs += prove_schedule(a, p, root); });
  });
  print("schedules, all roots", proofs, start);
  CHECK(proofs > kMostRanks * 2 * 13);
}

TEST(schedules_of_many_ranks) {
  const double start = seconds_used();
  static constexpr std::array samples = {96, 127, 128, 255, 256, 511, 512, 1001, 1024};
  std::atomic<int> proofs = 0;
  on_all_cores(0, check::kShort ? 0 : static_cast<int>(samples.size()) - 1, [&](int sample) {
    const int p = samples.at(static_cast<std::size_t>(sample));
    bool turn = p == 511 || p == 1024;  // of the four largest each algorithm has an odd and an even
    int number = 0;
    for (const Algorithm* a : algorithms()) {
      turn = !turn;
      if (!a->fits(p) || (p > 256 && (turn || !has_turn(p, sample + ++number / 2, 16)))) continue;
      proofs += prove_schedule(*a, p, p / 3 * (Layout(a->kind, p, 0, p).rooted()));
    }
  });
  print("schedules, samples to 1024", proofs, start);
  CHECK(proofs > 0);
}

TEST(plans_in_all_configurations) {
  const double start = seconds_used();
  std::atomic<int> proofs = 0;
  on_all_cores(1, kMostRanksInAllConfigurations, [&](int p) {
    each_case(p, kMostRanksWithAllRoots, [&](const Algorithm& a, int, int root) {
      const Schedule schedule = make_schedule(a, p, root);
      for (int mode = 0; mode < kModes; ++mode) {
        const bool inlined = static_cast<Mode>(mode) == Mode::inlined;
        for (const int depth : {1, 2, 3, kDepths, kInlineDepth}) {
          if (depth == kInlineDepth && !inlined) continue;
          for (int lag = 0; lag < kLags; ++lag) {
            const int turn = p + root + mode + depth + 2 * lag;
            if (!has_turn(p, turn, 12)) continue;
            Lowering how{static_cast<Mode>(mode), depth, lag, false, Stores::non_temporal};
            proofs += prove_plan(a, schedule, how);
            // What is right with these is with ordinary ones, which fewer proofs look at.
            how.stores = Stores::ordinary;
            if (check::all_cases() || turn % 8 == 0) proofs += prove_plan(a, schedule, how);
          }
        }
      }
    });
  });
  print("plans, all configurations", proofs, start);
  CHECK(proofs > 0);
}

// Plans for buffers of which the call decides whether peers reach them: four choices each.
TEST(mixed_plans) {
  const double start = seconds_used();
  std::atomic<int> proofs = 0;
  on_all_cores(1, kMostRanksInAllConfigurations, [&](int p) {
    each_case(p, kMostRanksWithAllRoots, [&](const Algorithm& a, int, int root) {
      const Schedule schedule = make_schedule(a, p, root);
      for (const Mode mode : {Mode::pull, Mode::push}) {
        if (!has_turn(p, p + root + static_cast<int>(mode), 6)) continue;
        // As the engine runs them; of few ranks with few slots too.
        const Stores around = Stores::non_temporal;
        proofs += prove_plan(a, schedule, {mode, 4, 1, true, around});
        if (p <= 8) proofs += prove_plan(a, schedule, {mode, 1 + p % 3, p % 2, true, around});
      }
    });
  });
  print("mixed plans", proofs, start);
  CHECK(proofs > 0);
}

// What is read from the inputs of others could not be in place, where their owner writes there.
TEST(plans_of_calls_that_are_not_in_place) {
  std::atomic<int> proofs = 0, staged = 0;
  on_all_cores(2, kMostRanksInAllConfigurations, [&](int p) {
    each_case(p, kMostRanksWithAllRoots, [&](const Algorithm& a, int, int root) {
      if (a.kind != Kind::alltoall || !has_turn(p, p, 4)) return;
      const Schedule schedule = make_schedule(a, p, root);
      const Lowering how{Mode::pull, 4, 1, true, Stores::non_temporal, true};
      proofs += prove_plan(a, schedule, how);
      const Reach all(static_cast<std::size_t>(p), {true, true});
      staged += std::string_view(a.name) == "linear"
                    ? resolve(lower(schedule, how), all).ranks[0].stage_cells
                    : 0;
    });
  });
  CHECK(proofs > 0 && staged == 0);
}

TEST(what_is_right_for_inputs_apart_is_wrong_in_place) {
  for (const Algorithm* a : algorithms()) {
    if (a->kind != Kind::alltoall || std::string_view(a->name) != "linear") continue;
    const Plan plan = lower(make_schedule(*a, 3), {.mode = Mode::pull, .apart = true});
    CHECK(prove(plan, false, usual_tiles(plan)).proved);
    CHECK(!prove(plan, true, usual_tiles(plan)).proved);
  }
}

TEST(plans_of_many_ranks) {
  const double start = seconds_used();
  std::atomic<int> proofs = 0;
  on_all_cores(kMostRanksInAllConfigurations + 1, kMostRanks, [&](int p) {
    int number = 0;
    for (const Algorithm* a : algorithms()) {
      ++number;
      if (!a->fits(p)) continue;
      const Schedule schedule = make_schedule(*a, p, p - 1);
      for (int mode = 0; mode < kModes; ++mode) {
        if (p > kMostRanksInAllModes && (mode + p + number) % 2 == 0) continue;
        if (!has_turn(p, (mode + p + number) / 2 + p / (kDepths * kLags), 12)) continue;
        // Every depth and lag has its turn in every mode.
        proofs += prove_plan(*a, schedule,
                             {static_cast<Mode>(mode), 1 + p % kDepths, p / kDepths % kLags, false,
                              Stores::non_temporal});
      }
    }
  });
  print("plans, one configuration a mode in turns", proofs, start);
  CHECK(proofs > 0);
}

}  // namespace

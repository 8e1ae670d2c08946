// SPDX-License-Identifier: Apache-2.0
// Hierarchical allreduces that go both ways at a time: proved, as are their plans; halves of the
// vector use the links of one side each; mutants are rejected.
#include <string>
#include <vector>

#include "algorithms/product.h"
#include "base/error.h"
#include "check.h"
#include "communicator/claims_of.h"
#include "loose.h"
#include "plan/lower.h"
#include "prove/plan_proof.h"
#include "prove/schedule_proof.h"

using namespace coll;

namespace {

using Phases = std::vector<LevelPhase>;

void expect_proved(const Report& report, const std::string& what) {
  if (!report.proved) check::fail(what + ": " + report.message);
}

// What the rank sends in a round, in cells, to members of its groups of that level.
long sent_within(const Schedule& s, const Levels& levels, int level, int rank, int round) {
  long cells = 0;
  const Program& program = s.programs[static_cast<std::size_t>(rank)];
  for (const Step& step : program.steps) {
    if (step.op != Op::send || step.round != round) continue;
    for (const int peer : program.peers(step)) {
      const bool apart = levels.group(level - 1, peer) != levels.group(level - 1, rank);
      if (apart && levels.group(level, peer) == levels.group(level, rank)) {
        cells += cells_of(program.source(step));
      }
    }
  }
  return cells;
}

TEST(both_ways_at_a_time) {
  for (const auto& members :
       {std::vector{1}, {3}, {2, 2}, {3, 2}, {5, 3}, {4, 4}, {4, 8}, {2, 3, 2}, {4, 1, 2}}) {
    const Levels levels = Levels::grid(members);
    const int last = levels.top();
    for (const LevelPhase first : {LevelPhase::ring, LevelPhase::circulant, LevelPhase::direct}) {
      Phases phases(members.size(), LevelPhase::ring);
      phases.front() = first;
      const Schedule s = product_both_ways(levels, phases);
      const auto cost = product_cost(Kind::allreduce, levels, phases);
      const Claims claims = claims_of(Kind::allreduce, cost);
      for (const bool in_place : {false, true}) {
        expect_proved(prove(s, in_place, claims), "both ways");
        if (s.p > 8) continue;
        const Plan plan = lower(s, {.mode = Mode::staged, .depth = 4, .lag = 1});
        expect_proved(prove(plan, in_place, usual_tiles(plan)), "plan, both ways");
      }
      const long crossing = cells_between(s, levels, last).front().sent, p = s.p;
      // A half vector between hosts as that of the least, another from each of their ranks.
      const long h = members.back(), k = p / h;
      CHECK(crossing * h == (h - 1) * (1 + k) * s.chunks);
    }
  }
}

TEST(in_a_square_torus_halves_keep_out_of_each_others_way) {
  const Levels square = Levels::grid({4, 4});
  const Schedule s = product_both_ways(square, Phases(2, LevelPhase::ring));
  for (int rank = 0; rank < s.p; ++rank) {
    for (int round = 0; round < 12; ++round) {
      const long row = sent_within(s, square, 0, rank, round);
      const long column = sent_within(s, square, 1, rank, round);
      // An eighth of the vector along one side, and a 32nd along the other, in turns.
      const bool near = round < 3 || round >= 9;
      CHECK(row * (near ? 8 : 32) == s.chunks && column * (near ? 8 : 32) == s.chunks);
    }
  }
  const Phases two(2, LevelPhase::ring);
  const Error uneven =
      thrown<Error>([&] { (void)product_both_ways(Levels(4, {{0, 0, 0, 1}}), two); });
  CHECK(uneven.status == Status::unsupported);
  CHECK(thrown<Error>([&] { (void)product_both_ways(square, {}); }).status ==
        Status::invalid_argument);
}

// Rejected in one placing at least.
bool rejected(const loose::Schedule& mutant) {
  const Schedule s = mutant.tight();
  return !prove(s, false, {}).proved || !prove(s, true, {}).proved;
}

TEST(halves_that_meet_are_rejected) {
  const Schedule right = product_both_ways(Levels::grid({2, 3}), Phases(2, LevelPhase::ring));
  const loose::Schedule whole(right);
  const Layout layout(right);
  int mutants = 0;
  for (std::size_t rank = 0; rank < whole.ranks.size(); ++rank) {
    for (std::size_t i = 0; i < whole.ranks[rank].size(); ++i) {
      loose::Schedule fewer = whole;
      fewer.ranks[rank].erase(fewer.ranks[rank].begin() + static_cast<std::ptrdiff_t>(i));
      CHECK(rejected(fewer));
      if (whole.ranks[rank][i].source.empty()) continue;
      loose::Schedule other = whole;  // the same cells of the other half of the vector
      for (CellRange& range : other.ranks[rank][i].source) {
        const int cells = layout.cells(static_cast<int>(rank), range.buffer);
        range.first = (range.first + right.chunks / 2) % (cells - range.cells + 1);
      }
      CHECK(rejected(other));
      ++mutants;
    }
  }
  CHECK(mutants > 100);
}

}  // namespace

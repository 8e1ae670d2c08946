// SPDX-License-Identifier: Apache-2.0
// Mistakes that no mutant makes, or that the provers once let pass, each with the reason why it is
// one.
#include <algorithm>
#include <string>

#include "check.h"
#include "communicator/claims_of.h"
#include "loose.h"
#include "plan/lower.h"
#include "prove/plan_proof.h"
#include "prove/schedule_proof.h"

using namespace coll;

namespace {

const Algorithm& algorithm(Kind kind, const char* name) {
  return *algorithms()[static_cast<std::size_t>(find_algorithm(kind, name))];
}

loose::Plan plan_of(const char* name, int p, const Lowering& how) {
  return loose::Plan(lower(make_schedule(algorithm(Kind::allreduce, name), p), how));
}

std::string fault_of(const loose::Plan& loose, const Claims& claims = {}) {
  const Plan plan = loose.tight();
  for (const bool in_place : {false, true}) {
    const Report report = prove(plan, in_place, usual_tiles(plan), kAllChecks, claims);
    if (!report.proved) return report.message;
  }
  return "";
}

void expect_fault(const loose::Plan& plan, const std::string& text, const Claims& claims = {}) {
  const std::string fault = fault_of(plan, claims);
  if (fault.find(text) == std::string::npos) check::fail("'" + fault + "' lacks '" + text + "'");
}

TEST(unchanged_plans_prove) {
  for (const Mode mode : {Mode::staged, Mode::inlined, Mode::pull, Mode::push}) {
    CHECK(fault_of(plan_of("direct_two_shot", 3, {mode, 2, 1})).empty());
  }
}

// The executor raises the entry's tick before it looks at any wait: those of the entry are not
// kept.
TEST(entry_does_not_wait) {
  loose::Plan plan = plan_of("direct_two_shot", 3, {Mode::push, 2, 0});
  auto& ops = plan.ranks[2].ops;
  CHECK(!ops[1].waits.empty() && ops[1].waits.front().op == 0);
  std::swap(ops[0].waits, ops[1].waits);
  expect_fault(plan, "rank 2, op 0 (entry): the entry waits for nobody");
}

// The executor leaves a wait for the tile `back` before this one out where there is none, be it a
// wait for the entry.
TEST(wait_for_entry_is_never_left_out) {
  loose::Plan plan = plan_of("direct_two_shot", 3, {Mode::push, 2, 0});
  Wait& wait = plan.ranks[0].ops[1].waits.front();
  CHECK(wait.op == 0);
  wait.back = plan.depth;
  expect_fault(plan, "rank 0, op 1 (round 0, receive): waits for an impossible tile");
}

// What goes around the caches is seen by others behind a fence only, whoever waited for the op.
TEST(stores_around_the_caches_want_a_fence) {
  const Lowering how{Mode::staged, 2, 0, false, Stores::non_temporal};
  loose::Plan plan = plan_of("direct_two_shot", 3, how);
  CHECK(fault_of(plan).empty());
  for (loose::RankPlan& mine : plan.ranks) {
    for (loose::PlanOp& op : mine.ops) op.fence = false;
  }
  expect_fault(plan, "no fence makes it see what was stored by rank");
  plan.stores = Stores::ordinary;
  CHECK(fault_of(plan).empty());
}

// The caller may read its results on another thread: they are fenced before the call returns.
TEST(results_are_fenced) {
  const Lowering how{Mode::staged, 2, 0, false, Stores::non_temporal};
  loose::Plan plan = plan_of("direct_two_shot", 3, how);
  plan.ranks[1].ops.back().fence = false;
  expect_fault(plan, "the caller gets its buffer back, but no fence makes it see what was stored");
}

// Nothing but the flag on one op says that a sum is to be divided: twice is once too often.
TEST(sum_is_finished_once) {
  loose::Plan plan = plan_of("direct_two_shot", 3, {Mode::staged, 2, 0});
  for (loose::PlanOp& op : plan.ranks[1].ops) {
    if (op.phase == Phase::receive && !op.sources.empty()) op.complete = true;
  }
  expect_fault(plan, "finishes a sum that was finished before");
}

// Bits of a result: one rank folds in another shape than the others.
TEST(plans_are_held_to_the_declared_trees) {
  loose::Plan plan = plan_of("direct_one_shot", 5, {Mode::pull, 2, 0});
  for (loose::PlanOp& op : plan.ranks[1].ops) op.shape = Shape::left;
  const Claims claims = claims_of(algorithm(Kind::allreduce, "direct_one_shot"), 5);
  CHECK(fault_of(plan).empty());
  expect_fault(plan, "rank 1, at the end: chunk 0 of the output: its summation tree", claims);
}

// An executor keeps addresses for as many operands as there are ranks, and one.
TEST(operands_are_as_many_as_an_executor_holds) {
  loose::Plan plan = plan_of("direct_one_shot", 2, {Mode::pull, 2, 0});
  auto& destinations = plan.ranks[0].ops[1].destinations;
  destinations.resize(4, destinations.front());
  expect_fault(plan, "rank 0, op 1 (round 0, send): more operands than ranks");
}

// Only an operand in a user's buffer tells the engine which chunk, so how many bytes, it moves.
TEST(moves_name_their_chunks) {
  loose::Plan plan = plan_of("ring", 3, {Mode::staged, 2, 0});
  for (loose::PlanOp& op : plan.ranks[0].ops) {
    const bool staged = std::any_of(op.destinations.begin(), op.destinations.end(),
                                    [](const loose::Operand& o) { return o.area >= 0; });
    if (op.phase == Phase::receive && staged) {
      std::erase_if(op.sources, [](const loose::Operand& o) { return o.area < 0; });
      std::erase_if(op.destinations, [](const loose::Operand& o) { return o.area < 0; });
    }
  }
  expect_fault(plan, "it moves from stage to stage");
}

// Inline readers look for the flag of the area's writer: it must exist, and fill the area.
TEST(areas_are_filled_by_their_writers) {
  loose::Plan plan = plan_of("ring", 3, {Mode::inlined, 2, 0});
  for (loose::PlanOp& op : plan.ranks[2].ops) {
    std::erase_if(op.destinations, [](const loose::Operand& o) { return o.area == 0; });
    if (op.destinations.empty()) op.sources.clear();
  }
  CHECK(!fault_of(plan).empty());
  plan = plan_of("ring", 3, {Mode::inlined, 2, 0});
  plan.ranks[2].areas.push_back({plan.ranks[2].areas.back().first + 1, 1, 1 << 20});
  expect_fault(plan, "does not fill it");
}

// One receive of a round may not write what another writes, or folds: which is first is chance.
TEST(receives_of_a_round_do_not_meet) {
  const CellRange input{Buffer::input, 0, 1}, output{Buffer::output, 0, 1};
  const CellRange scratch{Buffer::scratch, 0, 1};
  const loose::Step from_one{Op::recv, 1, Shape::left, {1}, {}, {output}};
  const loose::Step fold{Op::recv_reduce, 1, Shape::left, {kSelf, 2}, {output}, {scratch}};
  const loose::Step from_two{Op::recv, 1, Shape::left, {2}, {}, {output}};
  for (const bool both_write : {false, true}) {
    loose::Schedule s(
        Schedule{.kind = Kind::allreduce, .p = 3, .root = 0, .chunks = 1, .programs = {}});
    s.ranks = {
        {{Op::copy, 0, Shape::left, {}, {input}, {output}}, from_one, both_write ? from_two : fold},
        {{Op::send, 1, Shape::left, {0}, {input}, {}}},
        {{Op::send, 1, Shape::left, {0}, {input}, {}}}};
    const Report report = prove(s.tight(), false, {});
    CHECK(!report.proved);
    const char* text = both_write ? "written by two receives of the same round"
                                  : "its own operand is written by another receive";
    if (report.message.find(text) == std::string::npos) check::fail(report.message);
  }
}

TEST(layouts_that_do_not_add_up_are_refused) {
  loose::Plan plan(lower(make_schedule(algorithm(Kind::allgather, "ring"), 3), {}));
  plan.layout.chunks = 2;  // fewer than ranks: no chunk would be anybody's own
  expect_fault(plan, "the number of chunks does not suit the kind");
  plan.layout.chunks = 3 << 20;
  expect_fault(plan, "too many cells for a proof");
}

}  // namespace

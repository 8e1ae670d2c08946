// SPDX-License-Identifier: Apache-2.0
// Schedules and plans in a form that is easy to damage: every step and op owns its lists.
#pragma once

#include <vector>

#include "plan/plan.h"
#include "schedule/schedule.h"

namespace loose {

struct Step {
  coll::Op op;
  int round;
  coll::Shape shape;
  std::vector<int> peers;
  std::vector<coll::CellRange> source, target;
  bool operator==(const Step&) const = default;
};

struct Schedule {
  coll::Kind kind;
  int p, root, chunks;
  std::vector<std::vector<Step>> ranks;

  explicit Schedule(const coll::Schedule& s);
  coll::Schedule tight() const;
};

// The form in which two schedules that differ in labels and listing only are equal: rounds
// numbered 0, 1, 2, ..., steps of a round sorted, ranges merged, shapes of few operands left.
Schedule canonical(Schedule s);
bool operator==(const Schedule& a, const Schedule& b);

struct Operand {
  int rank, area;
  std::vector<coll::PlaceRange> ranges;
  coll::Condition when = {};
  bool operator==(const Operand&) const = default;
};

struct PlanOp {
  int round;
  coll::Phase phase;
  int lag;
  coll::Shape shape;
  bool complete, post, fence;
  std::vector<Operand> sources, destinations;
  std::vector<coll::Wait> waits;
};

struct RankPlan {
  std::vector<PlanOp> ops;
  std::vector<coll::Area> areas;
};

struct Plan {
  coll::Layout layout;
  coll::Mode mode;
  coll::Stores stores;
  int depth, max_lag, stride;
  bool mixed;
  std::vector<RankPlan> ranks;

  explicit Plan(const coll::Plan& plan);
  coll::Plan tight() const;
};

// Waits sorted, posts that nobody waits for taken back, shapes of few operands left; no epilogue
// where nothing is summed.
Plan canonical(Plan plan);
bool operator==(const Plan& a, const Plan& b);

}  // namespace loose

// SPDX-License-Identifier: Apache-2.0
// Damage to what a plan moves: to operands and ops.
#include <algorithm>
#include <array>
#include <utility>

#include "plan_edit.h"

namespace mutants {
namespace {

using coll::PlaceRange;
using coll::Wait;
using loose::Operand;
using loose::Plan;
using loose::PlanOp;
using loose::RankPlan;

bool folds(const PlanOp& op) { return op.sources.size() > 1; }
bool spreads(const PlanOp& op) { return op.destinations.size() > 1; }
bool folds_locally(const PlanOp& op) { return op.phase == coll::Phase::copy && folds(op); }

// Moves an operand by one cell, round the end of its buffer, or its message to another area.
bool shift(Plan& plan, Random& random, Operand& o) {
  if (o.area >= 0) {
    const auto& areas = of(plan, o.rank).areas;
    std::vector<int> fit;
    for (std::size_t a = 0; a < areas.size(); ++a) {
      if (areas[a].cells == areas[static_cast<std::size_t>(o.area)].cells) {
        fit.push_back(static_cast<int>(a));
      }
    }
    o.area = random.pick(fit);
    o.ranges.front().first = areas[static_cast<std::size_t>(o.area)].first;
    return true;
  }
  PlaceRange& r = random.pick(o.ranges);
  const int cells = plan.layout.cells(o.rank, static_cast<coll::Buffer>(r.place));
  if (cells <= r.cells) return false;
  r.first += random.sign();
  if (r.first < 0) r.first = cells - r.cells;
  if (r.first + r.cells > cells) r.first = 0;
  return true;
}

bool shift_source(Plan& plan, Random& random, std::string& change) {
  OpPlace place;
  if (!any_op(plan, random, place, moves)) return false;
  change = name(place);
  return shift(plan, random, random.pick(at(plan, place).sources));
}

bool shift_destination(Plan& plan, Random& random, std::string& change) {
  OpPlace place;
  if (!any_op(plan, random, place, moves)) return false;
  change = name(place);
  return shift(plan, random, random.pick(at(plan, place).destinations));
}

// The same cells of another rank, or another buffer of the same rank.
bool move_operand(Plan& plan, Random& random, std::string& change) {
  OpPlace place;
  if (!any_op(plan, random, place, moves)) return false;
  PlanOp& op = at(plan, place);
  Operand& o = random.below(2) == 0 ? random.pick(op.sources) : random.pick(op.destinations);
  if (o.area >= 0 || random.below(2) == 0) {
    o.rank = random.below(plan.layout.p);
  } else {
    PlaceRange& r = random.pick(o.ranges);
    r.place = static_cast<coll::Place>((static_cast<int>(r.place) + 1 + random.below(2)) % 3);
  }
  change = name(place);
  return true;
}

// What all ranks kept in the scratch of one is kept in its input.
bool work_in_input(Plan& plan, Random& random, std::string& change) {
  const int rank = random.below(plan.layout.p);
  if (plan.layout.cells(rank, coll::Buffer::input) < plan.layout.chunks) return false;
  for (RankPlan& mine : plan.ranks) {
    for (PlanOp& op : mine.ops) {
      for (auto* operands : {&op.sources, &op.destinations}) {
        for (Operand& o : *operands) {
          for (PlaceRange& r : o.ranges) {
            if (o.rank == rank && r.place == coll::Place::scratch) r.place = coll::Place::input;
          }
        }
      }
    }
  }
  change = "rank " + std::to_string(rank);
  return true;
}

bool reorder_sources(Plan& plan, Random& random, std::string& change) {
  OpPlace place;
  if (!any_op(plan, random, place, folds)) return false;
  auto& sources = at(plan, place).sources;
  std::swap(random.pick(sources), random.pick(sources));
  change = name(place);
  return true;
}

bool swap_local_fold(Plan& plan, Random& random, std::string& change) {
  OpPlace place;
  if (!any_op(plan, random, place, folds_locally)) return false;
  std::swap(at(plan, place).sources.front(), at(plan, place).sources.back());
  change = name(place);
  return true;
}

bool drop_local_operand(Plan& plan, Random& random, std::string& change) {
  OpPlace place;
  if (!any_op(plan, random, place, folds_locally)) return false;
  auto& list = at(plan, place).sources;
  list.erase(list.begin() + random.below(2));
  change = name(place);
  return true;
}

bool drop_source(Plan& plan, Random& random, std::string& change) {
  OpPlace place;
  if (!any_op(plan, random, place, folds)) return false;
  auto& list = at(plan, place).sources;
  list.erase(list.begin() + random.below(static_cast<int>(list.size())));
  change = name(place);
  return true;
}

bool drop_destination(Plan& plan, Random& random, std::string& change) {
  OpPlace place;
  if (!any_op(plan, random, place, spreads)) return false;
  auto& list = at(plan, place).destinations;
  list.erase(list.begin() + random.below(static_cast<int>(list.size())));
  change = name(place);
  return true;
}

bool flip_complete(Plan& plan, Random& random, std::string& change) {
  OpPlace place;
  if (!any_op(plan, random, place, moves)) return false;
  at(plan, place).complete = !at(plan, place).complete;
  change = name(place) + (at(plan, place).complete ? " on" : " off");
  return true;
}

bool exchange_ops(Plan& plan, Random& random, std::string& change) {
  OpPlace place;
  if (!any_op(plan, random, place, moves)) return false;
  auto& ops = of(plan, place.rank).ops;
  if (place.op + 2 >= ops.size()) return false;
  const std::size_t other = place.op + 1;
  std::swap(ops[place.op], ops[other]);
  if (random.below(2) == 0) {
    // With its time, so that it is not refused at first sight.
    std::swap(ops[place.op].round, ops[other].round);
    std::swap(ops[place.op].phase, ops[other].phase);
    std::swap(ops[place.op].lag, ops[other].lag);
  }
  for (coll::Area& a : of(plan, place.rank).areas) {
    const auto writer = static_cast<std::size_t>(a.writer);
    if (writer == place.op || writer == other) {
      a.writer = static_cast<int>(place.op + other - writer);
    }
  }
  change = name(place) + " and the next";
  return true;
}

bool drop_op(Plan& plan, Random& random, std::string& change) {
  OpPlace place;
  if (!any_op(plan, random, place, moves)) return false;
  const auto number = static_cast<int>(place.op);
  auto& ops = of(plan, place.rank).ops;
  ops[place.op + 1].waits.insert(ops[place.op + 1].waits.end(), ops[place.op].waits.begin(),
                                 ops[place.op].waits.end());
  ops.erase(ops.begin() + number);
  for (coll::Area& a : of(plan, place.rank).areas) a.writer -= a.writer >= number ? 1 : 0;
  for (RankPlan& mine : plan.ranks) {
    for (PlanOp& op : mine.ops) {
      for (Wait& w : op.waits) w.op -= w.peer == place.rank && w.op >= number ? 1 : 0;
    }
  }
  change = name(place);
  return true;
}

bool change_shape(Plan& plan, Random& random, std::string& change) {
  OpPlace place;
  if (!any_op(plan, random, place, folds)) return false;
  coll::Shape& shape = at(plan, place).shape;
  shape = shape == coll::Shape::left ? coll::Shape::balanced : coll::Shape::left;
  change = name(place);
  return true;
}

}  // namespace

std::span<const Mutator<Plan>> of_moves() {
  static constexpr auto all = std::to_array<Mutator<Plan>>({
      {"shift a source", 10, shift_source},
      {"shift a destination", 8, shift_destination},
      {"move an operand", 8, move_operand},
      {"work in the input", 2, work_in_input},
      {"reorder sources", 1, reorder_sources},
      {"swap a local fold", 20, swap_local_fold},
      {"drop a local operand", 20, drop_local_operand},
      {"drop a source", 5, drop_source},
      {"drop a destination", 1, drop_destination},
      {"flip complete", 8, flip_complete},
      {"exchange two ops", 1, exchange_ops},
      {"drop an op", 5, drop_op},
      {"change the shape of a fold", 5, change_shape},
  });
  return all;
}

}  // namespace mutants

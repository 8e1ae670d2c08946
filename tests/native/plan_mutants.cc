// SPDX-License-Identifier: Apache-2.0
// Damage to lowered plans: to waits, slots, operands, flags and clocks.
#include <algorithm>
#include <array>
#include <utility>

#include "mutants.h"

namespace mutants {
namespace {

using coll::PlaceRange;
using coll::Wait;
using loose::Operand;
using loose::Plan;
using loose::PlanOp;
using loose::RankPlan;

struct OpPlace {
  int rank = -1;
  std::size_t op = 0;
};

RankPlan& of(Plan& plan, int rank) { return plan.ranks[static_cast<std::size_t>(rank)]; }
PlanOp& at(Plan& plan, const OpPlace& p) { return of(plan, p.rank).ops[p.op]; }
std::string name(const OpPlace& p) {
  return "rank " + std::to_string(p.rank) + " op " + std::to_string(p.op);
}
std::string name(const Wait& w) {
  return " wait for rank " + std::to_string(w.peer) + " op " + std::to_string(w.op) + " back " +
         std::to_string(w.back);
}

bool any_op(Plan& plan, Random& random, OpPlace& place, bool (*wanted)(const PlanOp&)) {
  std::vector<OpPlace> all;
  for (int rank = 0; rank < plan.layout.p; ++rank) {
    for (std::size_t i = 0; i < of(plan, rank).ops.size(); ++i) {
      if (wanted(of(plan, rank).ops[i])) all.push_back({rank, i});
    }
  }
  if (all.empty()) return false;
  place = random.pick(all);
  return true;
}

bool moves(const PlanOp& op) { return !op.sources.empty(); }
bool unstages(const PlanOp& op) {
  return std::any_of(op.sources.begin(), op.sources.end(),
                     [](const Operand& o) { return o.area >= 0; });
}
bool waits(const PlanOp& op) { return !op.waits.empty(); }
bool posts(const PlanOp& op) { return op.post; }
bool folds(const PlanOp& op) { return op.sources.size() > 1; }
bool spreads(const PlanOp& op) { return op.destinations.size() > 1; }

// Some wait of some op.
struct WaitPlace {
  OpPlace place;
  Wait* wait = nullptr;
};

bool any_wait(Plan& plan, Random& random, WaitPlace& found, std::string& change) {
  if (!any_op(plan, random, found.place, waits)) return false;
  found.wait = &random.pick(at(plan, found.place).waits);
  change = name(found.place) + name(*found.wait);
  return true;
}

bool drop_wait(Plan& plan, Random& random, std::string& change) {
  WaitPlace w;
  if (!any_wait(plan, random, w, change)) return false;
  auto& list = at(plan, w.place).waits;
  list.erase(list.begin() + (w.wait - list.data()));
  return true;
}

bool wait_for_earlier_op(Plan& plan, Random& random, std::string& change) {
  WaitPlace w;
  if (!any_wait(plan, random, w, change)) return false;
  // One that posts, where there is one: else the wait would not end.
  int op = w.wait->op - 1;
  while (op > 0 && !of(plan, w.wait->peer).ops[static_cast<std::size_t>(op)].post) --op;
  if (op < 0) return false;
  w.wait->op = op;
  change += " now for op " + std::to_string(op);
  return true;
}

bool wait_for_later_op(Plan& plan, Random& random, std::string& change) {
  WaitPlace w;
  if (!any_wait(plan, random, w, change)) return false;
  ++w.wait->op;
  return true;
}

bool wait_for_other_peer(Plan& plan, Random& random, std::string& change) {
  WaitPlace w;
  if (plan.layout.p < 2 || !any_wait(plan, random, w, change)) return false;
  w.wait->peer = (w.wait->peer + 1 + random.below(plan.layout.p - 1)) % plan.layout.p;
  change += " now for rank " + std::to_string(w.wait->peer);
  return true;
}

bool wait_for_other_tile(Plan& plan, Random& random, std::string& change) {
  WaitPlace w;
  if (!any_wait(plan, random, w, change)) return false;
  w.wait->back = w.wait->back == 0 ? plan.depth : 0;
  return true;
}

// The wait stands at the next op of its rank.
bool delay_wait(Plan& plan, Random& random, std::string& change) {
  WaitPlace w;
  if (!any_wait(plan, random, w, change)) return false;
  auto& ops = of(plan, w.place.rank).ops;
  if (w.place.op + 1 >= ops.size()) return false;
  ops[w.place.op + 1].waits.push_back(*w.wait);
  ops[w.place.op].waits.erase(ops[w.place.op].waits.begin() +
                              (w.wait - ops[w.place.op].waits.data()));
  return true;
}

bool wait_at_entry(Plan& plan, Random& random, std::string& change) {
  WaitPlace w;
  if (!any_wait(plan, random, w, change) || w.wait->op != 0) return false;
  auto& ops = of(plan, w.place.rank).ops;
  ops.front().waits.push_back(*w.wait);
  ops[w.place.op].waits.erase(ops[w.place.op].waits.begin() +
                              (w.wait - ops[w.place.op].waits.data()));
  return true;
}

bool swap_waits(Plan& plan, Random& random, std::string& change) {
  OpPlace place;
  if (!any_op(plan, random, place, waits)) return false;
  auto& ops = of(plan, place.rank).ops;
  const std::size_t other = 1 + random.index(ops.size() - 1);
  std::swap(ops[place.op].waits, ops[other].waits);
  change = name(place) + " with op " + std::to_string(other);
  return true;
}

void set_depth(Plan& plan, int depth) {
  plan.depth = depth;
  for (RankPlan& mine : plan.ranks) {
    for (PlanOp& op : mine.ops) {
      for (Wait& w : op.waits) w.back = w.back > 0 ? depth : 0;
    }
  }
}

// As many slots as the pipeline is deep: one is missing, unless a fold is its own first reader.
bool remove_slot(Plan& plan, Random&, std::string& change) {
  if (plan.max_lag < 1 || plan.depth <= plan.max_lag) return false;
  set_depth(plan, plan.max_lag);
  change = "all ranks to depth " + std::to_string(plan.depth);
  return true;
}

// One slot less, and the waits of one op forget it.
bool remove_slot_and_wait(Plan& plan, Random& random, std::string& change) {
  if (plan.depth < 2 || !drop_wait(plan, random, change)) return false;
  set_depth(plan, plan.depth - 1);
  change += " dropped, depth " + std::to_string(plan.depth);
  return true;
}

bool drop_post(Plan& plan, Random& random, std::string& change) {
  OpPlace place;
  if (!any_op(plan, random, place, posts)) return false;
  at(plan, place).post = false;
  change = name(place);
  return true;
}

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

bool reorder_sources(Plan& plan, Random& random, std::string& change) {
  OpPlace place;
  if (!any_op(plan, random, place, folds)) return false;
  auto& sources = at(plan, place).sources;
  std::swap(random.pick(sources), random.pick(sources));
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

bool change_lag(Plan& plan, Random& random, std::string& change) {
  OpPlace place;
  if (!any_op(plan, random, place, moves)) return false;
  PlanOp& op = at(plan, place);
  op.lag += random.sign();
  plan.max_lag = std::max(plan.max_lag, op.lag);
  change = name(place) + " to lag " + std::to_string(op.lag);
  return true;
}

// A phase of a round that reads slots, and what comes after it, on all ranks, works so much later
// that the pipeline is as deep as there are slots.
bool delay_phase(Plan& plan, Random& random, std::string& change) {
  OpPlace place;
  const int by = plan.depth - plan.max_lag;
  if (by < 1 || !any_op(plan, random, place, unstages)) return false;
  const PlanOp from = at(plan, place);
  for (RankPlan& mine : plan.ranks) {
    for (PlanOp& op : mine.ops) {
      if (op.sources.empty()) continue;
      if (std::pair(op.round, op.phase) >= std::pair(from.round, from.phase)) op.lag += by;
    }
  }
  plan.max_lag = plan.depth;
  change = "all from " + name(place) + " on, by " + std::to_string(by) + " tiles";
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

// Nobody looks at the flags any more.
bool drop_flags(Plan& plan, Random&, std::string& change) {
  if (plan.mode != coll::Mode::inlined) return false;
  plan.mode = coll::Mode::staged;
  change = "all ranks";
  return true;
}

}  // namespace

std::span<const Mutator<Plan>> of_plans() {
  static constexpr auto all = std::to_array<Mutator<Plan>>({
      {"drop a wait", 10, drop_wait},
      {"wait for an earlier op", 10, wait_for_earlier_op},
      {"wait for a later op", 1, wait_for_later_op},
      {"wait for another peer", 5, wait_for_other_peer},
      {"wait for another tile", 5, wait_for_other_tile},
      {"delay a wait", 10, delay_wait},
      {"wait at the entry", 3, wait_at_entry},
      {"swap the waits of two ops", 1, swap_waits},
      {"remove a slot", 1, remove_slot},
      {"remove a slot and a wait", 8, remove_slot_and_wait},
      {"drop a post", 3, drop_post},
      {"shift a source", 10, shift_source},
      {"shift a destination", 8, shift_destination},
      {"move an operand", 8, move_operand},
      {"reorder sources", 1, reorder_sources},
      {"drop a source", 5, drop_source},
      {"drop a destination", 1, drop_destination},
      {"flip complete", 8, flip_complete},
      {"change a lag", 1, change_lag},
      {"delay a phase", 1, delay_phase},
      {"exchange two ops", 1, exchange_ops},
      {"drop an op", 5, drop_op},
      {"change the shape of a fold", 5, change_shape},
      {"drop the flags", 3, drop_flags},
  });
  return all;
}

}  // namespace mutants

// SPDX-License-Identifier: Apache-2.0
// Damage to the order of a plan: to waits, posts, fences, flags, slots and lags.
#include <algorithm>
#include <array>
#include <utility>

#include "plan_edit.h"

namespace mutants {
namespace {

using coll::Wait;
using loose::Operand;
using loose::Plan;
using loose::PlanOp;
using loose::RankPlan;

bool waits(const PlanOp& op) { return !op.waits.empty(); }
bool posts(const PlanOp& op) { return op.post; }
bool fences(const PlanOp& op) { return op.fence; }
bool unstages(const PlanOp& op) {
  return std::any_of(op.sources.begin(), op.sources.end(),
                     [](const Operand& o) { return o.area >= 0; });
}

std::string name_of(const Wait& w) {
  return " wait for rank " + std::to_string(w.peer) + " op " + std::to_string(w.op) + " back " +
         std::to_string(w.back);
}

// Some wait of some op.
struct WaitPlace {
  OpPlace place;
  Wait* wait = nullptr;
};

bool any_wait(Plan& plan, Random& random, WaitPlace& found, std::string& change) {
  if (!any_op(plan, random, found.place, waits)) return false;
  found.wait = &random.pick(at(plan, found.place).waits);
  change = name(found.place) + name_of(*found.wait);
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

bool drop_fence(Plan& plan, Random& random, std::string& change) {
  OpPlace place;
  if (!any_op(plan, random, place, fences)) return false;
  at(plan, place).fence = false;
  change = name(place);
  return true;
}

// A rank fences when its call returns, and not before.
bool drop_early_fences(Plan& plan, Random& random, std::string& change) {
  OpPlace place;
  if (!any_op(plan, random, place, fences)) return false;
  auto& ops = of(plan, place.rank).ops;
  for (std::size_t op = 0; op + 1 < ops.size(); ++op) ops[op].fence = false;
  change = "rank " + std::to_string(place.rank) + ", all but op " + std::to_string(ops.size() - 1);
  return true;
}

// Nobody looks at the flags any more.
bool drop_flags(Plan& plan, Random&, std::string& change) {
  if (plan.mode != coll::Mode::inlined) return false;
  plan.mode = coll::Mode::staged;
  change = "all ranks";
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

}  // namespace

std::span<const Mutator<Plan>> of_waits() {
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
      {"drop a fence", 5, drop_fence},
      {"drop early fences", 3, drop_early_fences},
      {"change a lag", 1, change_lag},
      {"delay a phase", 1, delay_phase},
      {"drop the flags", 3, drop_flags},
  });
  return all;
}

}  // namespace mutants

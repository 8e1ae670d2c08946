// SPDX-License-Identifier: Apache-2.0
#include "engine/recording.h"

#include <algorithm>
#include <set>

#include "base/index.h"

namespace coll {
namespace {

// Who takes a message out of the stage of this rank.
void add_readers(const Plan& plan, int writer, int area, std::set<int>& readers) {
  for (int rank = 0; rank < static_cast<int>(plan.ranks.size()); ++rank) {
    if (rank == writer) continue;
    const RankPlan& theirs = plan.ranks[index(rank)];
    for (const PlanOp& op : theirs.ops) {
      for (const Operand& source : theirs.sources(op)) {
        if (source.rank == writer && source.area == area) readers.insert(rank);
      }
    }
  }
}

std::set<int> other_ends(const Plan& plan, int rank, const PlanOp& op) {
  const RankPlan& mine = plan.ranks[index(rank)];
  std::set<int> ends;
  if (op.phase != Phase::send) {
    for (const Operand& source : mine.sources(op)) ends.insert(source.rank);
  } else {
    for (const Operand& destination : mine.destinations(op)) {
      ends.insert(destination.rank);
      if (destination.area >= 0) add_readers(plan, rank, destination.area, ends);
    }
  }
  ends.erase(rank);
  return ends;
}

}  // namespace

void describe(Event& step, int rank) {
  const RankPlan& mine = step.plan->ranks[index(rank)];
  const PlanOp& op = mine.ops[step.number];
  const std::set<int> ends = other_ends(*step.plan, rank, op);
  const Event::Act moves = op.phase == Phase::send ? Event::Act::send : Event::Act::receive;
  step.act = mine.sources(op).size() > 1 ? Event::Act::fold
             : ends.empty()              ? Event::Act::copy
                                         : moves;
  step.round = op.round;
  step.peers = static_cast<int>(ends.size());
  step.peer = ends.size() == 1 ? *ends.begin() : -1;
}

}  // namespace coll

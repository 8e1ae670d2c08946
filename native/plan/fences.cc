// SPDX-License-Identifier: Apache-2.0
#include "plan/fences.h"

#include <algorithm>
#include <vector>

namespace coll {
namespace {

// Of the buffers of each rank, whether others read or write them: input and output together, which
// may be one memory, and scratch.
class Shared {
 public:
  explicit Shared(const Plan& plan) : plan_(plan), caller_(plan.ranks.size()), scratch_(caller_) {
    for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
      const RankPlan& mine = plan.ranks[rank];
      for (const Operand& o : mine.operand_pool) {
        if (o.area >= 0 || o.rank == static_cast<int>(rank)) continue;
        for (const PlaceRange& r : mine.ranges(o)) of(o.rank, r.place) = true;
      }
    }
  }

  // Whether an op of a rank stores what others may touch.
  bool stored_by(int rank, const PlanOp& op) {
    const RankPlan& mine = plan_.ranks[static_cast<std::size_t>(rank)];
    const auto stored = mine.destinations(op);
    return std::any_of(stored.begin(), stored.end(), [&](const Operand& o) {
      const auto ranges = mine.ranges(o);
      return o.area >= 0 || o.rank != rank ||
             std::any_of(ranges.begin(), ranges.end(),
                         [&](const PlaceRange& r) { return of(rank, r.place); });
    });
  }

 private:
  std::vector<bool>::reference of(int rank, Place place) {
    return (place == Place::scratch ? scratch_ : caller_)[static_cast<std::size_t>(rank)];
  }

  const Plan& plan_;
  std::vector<bool> caller_, scratch_;  // by rank
};

bool raises_a_flag(const RankPlan& mine, const PlanOp& op) {
  const auto stored = mine.destinations(op);
  return std::any_of(stored.begin(), stored.end(), [](const Operand& o) { return o.area >= 0; });
}

}  // namespace

void place_fences(Plan& plan) {
  if (plan.stores == Stores::ordinary) return;
  Shared shared(plan);
  for (int rank = 0; rank < plan.layout.p; ++rank) {
    RankPlan& mine = plan.ranks[static_cast<std::size_t>(rank)];
    bool unseen = false;  // something was stored that others may touch
    for (int number = 1; number < mine.exit(); ++number) {
      PlanOp& op = mine.ops[static_cast<std::size_t>(number)];
      unseen = unseen || shared.stored_by(rank, op);
      op.fence = unseen && (op.post || (plan.inlined() && raises_a_flag(mine, op)));
      if (op.fence) unseen = false;
    }
    mine.ops.back().fence = mine.exit() > 1;  // one without moves has stored nothing
  }
}

}  // namespace coll

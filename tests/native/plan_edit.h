// SPDX-License-Identifier: Apache-2.0
// What the mutators of plans are made of.
#pragma once

#include <string>
#include <vector>

#include "mutants.h"

namespace mutants {

struct OpPlace {
  int rank = -1;
  std::size_t op = 0;
};

inline loose::RankPlan& of(loose::Plan& plan, int rank) {
  return plan.ranks[static_cast<std::size_t>(rank)];
}
inline loose::PlanOp& at(loose::Plan& plan, const OpPlace& p) { return of(plan, p.rank).ops[p.op]; }
inline std::string name(const OpPlace& p) {
  return "rank " + std::to_string(p.rank) + " op " + std::to_string(p.op);
}
inline bool moves(const loose::PlanOp& op) { return !op.sources.empty(); }

template <class Wanted>
bool any_op(loose::Plan& plan, Random& random, OpPlace& place, Wanted&& wanted) {
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

}  // namespace mutants

// SPDX-License-Identifier: Apache-2.0
#include "communicator/wire_plans.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/product.h"
#include "base/error.h"
#include "base/looks.h"
#include "plan/wire_lower.h"
#include "prove/wire_order.h"
#include "prove/wire_proof.h"
#include "prove/wrong_schedule.h"

namespace coll {

namespace {

// Ranks by host, and hosts; ranks alone where no host has two, or one has all.
Levels levels_of(int ranks, const std::vector<std::string>& hosts) {
  std::vector<int> grouping;
  for (const std::string& host : hosts) {
    grouping.push_back(static_cast<int>(std::ranges::find(hosts, host) - hosts.begin()));
  }
  const std::set<int> different(grouping.begin(), grouping.end());
  const bool shared = different.size() > 1 && different.size() < grouping.size();
  std::vector<std::vector<int>> groupings;
  if (shared) groupings.push_back(grouping);
  return {ranks, groupings};
}

const char* name_of(int algorithm) {
  if (algorithm == kHierarchical) return "hierarchical";
  if (algorithm >= kGivenSchedules) return "given";
  return algorithms()[static_cast<std::size_t>(algorithm)]->name;
}

}  // namespace

WirePlans::WirePlans(int rank, int ranks, const std::vector<std::string>& hosts)
    : rank_(rank), ranks_(ranks), given_(ranks), levels_(levels_of(ranks, hosts)) {}

// Few talk directly: in one round, with as few bytes as any other way.
Schedule WirePlans::schedule_of(Kind kind, const WireChoice& choice, int root) const {
  if (choice.algorithm != kHierarchical) return given_.schedule_of(choice.algorithm, ranks_, root);
  constexpr int kFew = 16;
  const bool leads = kind == Kind::broadcast || kind == Kind::reduce;
  std::vector<LevelPhase> phases;
  for (int level = 0; level < levels_.depth(); ++level) {
    phases.push_back(leads                           ? LevelPhase::binomial
                     : levels_.widest(level) <= kFew ? LevelPhase::direct
                                                     : LevelPhase::circulant);
  }
  return product(kind, levels_, root, phases);
}

PreparedWirePlan& WirePlans::get(Kind kind, const WireChoice& choice, int root) {
  auto& prepared = plans_[{kind, choice.algorithm, choice.lag, choice.depth, root}];
  if (!prepared) prepared = std::make_unique<PreparedWirePlan>(make(kind, choice, root));
  return *prepared;
}

WirePlan WirePlans::make(Kind kind, const WireChoice& choice, int root) const {
  const Looks looks(look_);
  const Schedule schedule = schedule_of(kind, choice, root);
  return blaming(schedule, name_of(choice.algorithm), [&] { return proved(schedule, choice); });
}

// The plans of all ranks are proved on each, up to so many ranks as that takes a moment for. Of
// more only the order of this rank's own accesses is: the schedule was proved, and what the plans
// of fewer ranks show is how it is lowered.
WirePlan WirePlans::proved(const Schedule& schedule, const WireChoice& choice) const {
  constexpr int kMostProved = 32;
  const WireLowering how{.depth = choice.depth, .lag = choice.lag, .pace = choice.pace};
  std::vector<WirePlan> plans;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (rank == rank_ || ranks_ <= kMostProved) {
      plans.push_back(lower_for_wire(schedule, rank, how));
    }
  }
  for (const bool in_place : {true, false}) {
    const std::string fault =
        ranks_ <= kMostProved ? prove_wire(plans, in_place).message
                              : WireOrder(plans.front(), how.depth + 2).race(in_place).value_or("");
    if (fault.empty()) continue;
    throw Error(Status::internal, "the plan for the wire does not prove: " + fault);
  }
  return std::move(plans[ranks_ <= kMostProved ? static_cast<std::size_t>(rank_) : 0]);
}

}  // namespace coll

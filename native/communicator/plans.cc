// SPDX-License-Identifier: Apache-2.0
#include "communicator/plans.h"

#include <string>
#include <utility>

#include "algorithms/algorithm.h"
#include "base/error.h"
#include "base/looks.h"
#include "communicator/claims_of.h"
#include "plan/lower.h"
#include "plan/reach.h"
#include "prove/plan_proof.h"
#include "prove/wrong_schedule.h"

namespace coll {
namespace {

// Which stores are faster changes with the place of the cores and with what else runs, so each rank
// times its own (engine/trial.h): the plan has to be right with either. Lines with their flags are
// too short to gain.
Stores stores_of(Mode mode) {
  return mode == Mode::inlined ? Stores::ordinary : Stores::non_temporal;
}

// One of those that the proof of a mixed plan has been made of.
Plan all_reached(const Plan& mixed) {
  return resolve(mixed, Reach(mixed.ranks.size(), {true, true}));
}

}  // namespace

PreparedPlan& Plans::get(const Choice& choice, int root, Of buffers) {
  const std::uint64_t key =
      static_cast<std::uint64_t>(choice.algorithm) | static_cast<std::uint64_t>(choice.mode) << 16 |
      static_cast<std::uint64_t>(choice.lag) << 24 | static_cast<std::uint64_t>(root) << 32 |
      static_cast<std::uint64_t>(buffers) << 62;
  auto& prepared = plans_[key];
  if (!prepared) {
    prepared = std::make_unique<PreparedPlan>(make(choice, root, buffers), rank_, segment_);
  }
  return *prepared;
}

Plan Plans::make(const Choice& choice, int root, Of buffers) const {
  const Looks looks(look_);
  const Schedule schedule =
      given_.schedule_of(choice.algorithm, static_cast<int>(segment_.shape().ranks), root);
  const bool ours = choice.algorithm < kGivenSchedules;
  const char* name =
      ours ? algorithms()[static_cast<std::size_t>(choice.algorithm)]->name : "given";
  return blaming(schedule, name, [&] {
    Plan plan = proved(schedule, choice, buffers == Of::reached_apart);
    return buffers == Of::any ? std::move(plan) : all_reached(plan);
  });
}

Plan Plans::proved(const Schedule& schedule, const Choice& choice, bool apart) const {
  const bool ours = choice.algorithm < kGivenSchedules;
  const Algorithm* a = ours ? algorithms()[static_cast<std::size_t>(choice.algorithm)] : nullptr;
  const Claims claims = ours ? claims_of(*a, schedule.p) : Claims{};
  const SegmentShape& shape = segment_.shape();
  std::string why;
  for (const Mode mode : {choice.mode, Mode::staged}) {
    Plan plan = lower(schedule, {.mode = mode,
                                 .depth = shape.slots(mode == Mode::inlined),
                                 .lag = choice.lag,
                                 .mixed = mixed_,
                                 .stores = stores_of(mode),
                                 .apart = apart});
    Report report = prove(plan, false, usual_tiles(plan), kAllChecks, claims);
    if (report.proved && !apart) {
      report = prove(plan, true, usual_tiles(plan), kAllChecks, claims);
    }
    if (report.proved) return plan;
    why = report.message;
  }
  if (!ours) {
    throw Error(Status::invalid_argument, "the plan of a given schedule does not prove: " + why +
                                              "; too large a one wants fewer chunks");
  }
  throw Error(Status::internal, std::string("the plan of ") + a->name + " does not prove: " + why);
}

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
#include "communicator/plans.h"

#include <string>
#include <utility>

#include "algorithms/algorithm.h"
#include "base/error.h"
#include "communicator/claims_of.h"
#include "communicator/fingerprint.h"
#include "plan/lower.h"
#include "prove/plan_proof.h"
#include "prove/schedule_proof.h"
#include "schedule/encode.h"

namespace coll {

PreparedPlan& Plans::get(const Choice& choice, int root) {
  const std::uint64_t key =
      static_cast<std::uint64_t>(choice.algorithm) | static_cast<std::uint64_t>(choice.mode) << 16 |
      static_cast<std::uint64_t>(choice.lag) << 24 | static_cast<std::uint64_t>(root) << 32;
  auto& prepared = plans_[key];
  if (!prepared) prepared = std::make_unique<PreparedPlan>(make(choice, root), rank_, segment_);
  return *prepared;
}

Schedule Plans::schedule_of(const Choice& choice, int root) const {
  if (choice.algorithm >= kGivenSchedules) return given(choice.algorithm).schedule;
  const Algorithm& a = *algorithms()[static_cast<std::size_t>(choice.algorithm)];
  return make_schedule(a, static_cast<int>(segment_.shape().ranks), root);
}

Plan Plans::make(const Choice& choice, int root) const {
  const Schedule schedule = schedule_of(choice, root);
  const bool ours = choice.algorithm < kGivenSchedules;
  const Algorithm* a = ours ? algorithms()[static_cast<std::size_t>(choice.algorithm)] : nullptr;
  const Claims claims = ours ? claims_of(*a, schedule.p) : Claims{};
  const int depth = static_cast<int>(segment_.shape().depth);
  std::string why;
  for (const Mode mode : {choice.mode, Mode::staged}) {
    Plan plan = lower(schedule, {.mode = mode, .depth = depth, .lag = choice.lag, .mixed = mixed_});
    Report report = prove(plan, true, usual_tiles(plan), kAllChecks, claims);
    if (report.proved) {
      report = prove(plan, false, usual_tiles(plan), kAllChecks, claims);
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

int Plans::add(Schedule&& schedule, std::string name) {
  if (schedule.p != static_cast<int>(segment_.shape().ranks)) {
    throw Error(Status::invalid_argument, "the schedule is for " + std::to_string(schedule.p) +
                                              " ranks, the communicator has " +
                                              std::to_string(segment_.shape().ranks));
  }
  GivenTree tree;
  for (const bool in_place : {true, false}) {
    const Report report = prove(schedule, in_place, {});
    if (!report.proved) {
      throw Error(Status::invalid_argument, "the schedule is wrong: " + report.message);
    }
    tree.rank_order = tree.rank_order && report.rank_order;
    tree.canonical = tree.canonical && report.canonical;
    tree.one_fold = tree.one_fold && report.one_fold;
  }
  std::uint64_t hash = 0;
  for (const std::int32_t word : encode(schedule)) {
    hash = mix(hash ^ static_cast<std::uint32_t>(word));
  }
  given_.push_back({std::move(schedule), std::move(name), tree, hash});
  return kGivenSchedules + static_cast<int>(given_.size()) - 1;
}

const Plans::Given& Plans::given(int number) const {
  const auto index = static_cast<std::size_t>(number - kGivenSchedules);
  if (number < kGivenSchedules || index >= given_.size()) {
    throw Error(Status::invalid_argument,
                "algorithm number " + std::to_string(number) +
                    " is none of the table, and no schedule that this communicator was given");
  }
  return given_[index];
}

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
#include "communicator/given.h"

#include <utility>

#include "algorithms/algorithm.h"
#include "base/error.h"
#include "communicator/fingerprint.h"
#include "prove/schedule_proof.h"
#include "schedule/encode.h"

namespace coll {

Schedule GivenSchedules::schedule_of(int algorithm, int ranks, int root) const {
  if (algorithm >= kGivenSchedules) return at(algorithm).schedule;
  return make_schedule(*algorithms()[static_cast<std::size_t>(algorithm)], ranks, root);
}

int GivenSchedules::add(Schedule&& schedule, std::string name) {
  if (schedule.p != ranks_) {
    throw Error(Status::invalid_argument, "the schedule is for " + std::to_string(schedule.p) +
                                              " ranks, the communicator has " +
                                              std::to_string(ranks_));
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

const GivenSchedules::Given& GivenSchedules::at(int number) const {
  const auto index = static_cast<std::size_t>(number - kGivenSchedules);
  if (number < kGivenSchedules || index >= given_.size()) {
    throw Error(Status::invalid_argument,
                "algorithm number " + std::to_string(number) +
                    " is none of the table, and no schedule that this communicator was given");
  }
  return given_[index];
}

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
#include "prove/wrong_schedule.h"

#include "base/error.h"
#include "prove/schedule_proof.h"
#include "schedule/check.h"
#include "schedule/kind_name.h"

namespace coll {
namespace {

[[noreturn]] void refuse(const Schedule& s, const std::string& name, const std::string& why) {
  throw Error(Status::internal, "the schedule of " + std::string(name_of(s.kind)) + " " + name +
                                    " for " + std::to_string(s.p) +
                                    " ranks does not prove: " + why);
}

}  // namespace

void refuse_broken(const Schedule& schedule, const std::string& name) {
  if (const auto broken = broken_structure(schedule)) refuse(schedule, name, *broken);
}

void refuse_wrong(const Schedule& schedule, const std::string& name) {
  for (const bool in_place : {false, true}) {
    const Report report = prove(schedule, in_place, {});
    if (!report.proved) refuse(schedule, name, report.message);
  }
}

}  // namespace coll

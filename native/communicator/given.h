// SPDX-License-Identifier: Apache-2.0
// The schedules from outside the table that one communicator was given, and proved.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/schedule.h"
#include "select/choose.h"

namespace coll {

class GivenSchedules {
 public:
  explicit GivenSchedules(int ranks) : ranks_(ranks) {}

  // Takes a schedule, if it proves, and returns its number for Choice. Throws Error with the first
  // thing that is wrong with it.
  int add(Schedule&& schedule, std::string name);

  // What a given schedule is, and a hash of all of it: ranks may have been given different ones.
  struct GivenTree {
    bool rank_order = true, canonical = true, one_fold = true;
  };
  struct Given {
    Schedule schedule;
    std::string name;
    GivenTree tree;
    std::uint64_t hash;
  };
  // Throws Error where there is none of this number.
  const Given& at(int number) const;
  // That of any number: of the table, or a given one.
  Schedule schedule_of(int algorithm, int ranks, int root) const;

 private:
  int ranks_;
  std::vector<Given> given_;
};

}  // namespace coll

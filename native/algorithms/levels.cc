// SPDX-License-Identifier: Apache-2.0
#include "algorithms/levels.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/error.h"

namespace coll {
namespace {

constexpr int kMostLevels = 16;

[[noreturn]] void refuse_levels(const std::string& why) {
  throw Error(Status::invalid_argument, "levels: " + why);
}

}  // namespace

Levels::Levels(int p, const std::vector<std::vector<int>>& groupings) : p_(p) {
  if (p < 1) refuse_levels("there is no rank: give one or more");
  if (groupings.size() >= kMostLevels) {
    refuse_levels(std::to_string(groupings.size()) + " groupings are given: at most " +
                  std::to_string(kMostLevels - 1) + " are possible");
  }
  for (const std::vector<int>& grouping : groupings) add(grouping);
  add(std::vector<int>(static_cast<std::size_t>(p), 0));
}

void Levels::add(const std::vector<int>& grouping) {
  const int below = depth() - 1;
  const std::string name = "grouping " + std::to_string(depth());
  if (grouping.size() != static_cast<std::size_t>(p_)) {
    refuse_levels(name + " is of " + std::to_string(grouping.size()) + " ranks, not of all " +
                  std::to_string(p_));
  }
  Level level;
  std::map<int, int> numbers;
  std::vector<int> above(static_cast<std::size_t>(groups(below)), -1);
  std::vector<int> places(above.size());
  for (int rank = 0; rank < p_; ++rank) {
    const int given = grouping[static_cast<std::size_t>(rank)];
    const auto [found, first] = numbers.try_emplace(given, static_cast<int>(level.members.size()));
    if (first) level.members.emplace_back();
    const int number = found->second, member = group(below, rank);
    auto& home = above[static_cast<std::size_t>(member)];
    if (home < 0) {
      auto& members = level.members[static_cast<std::size_t>(number)];
      home = number;
      places[static_cast<std::size_t>(member)] = static_cast<int>(members.size());
      members.push_back(member);
    } else if (home != number) {
      refuse_levels(name + " parts rank " + std::to_string(rank) +
                    " from a rank of its group in the finer one before: groups must nest");
    }
    level.group.push_back(number);
    level.place.push_back(places[static_cast<std::size_t>(member)]);
  }
  levels_.push_back(std::move(level));
}

Levels Levels::grid(const std::vector<int>& members) {
  int p = 1;
  for (const int count : members) p *= count;
  std::vector<std::vector<int>> groupings;
  int size = 1;
  for (std::size_t i = 0; i + 1 < members.size(); ++i) {
    size *= members[i];
    groupings.emplace_back();
    for (int rank = 0; rank < p; ++rank) groupings.back().push_back(rank / size);
  }
  return {p, groupings};
}

int Levels::widest(int level) const {
  std::size_t most = 0;
  for (const auto& members : of(level).members) most = std::max(most, members.size());
  return static_cast<int>(most);
}

bool Levels::even() const {
  return std::all_of(levels_.begin(), levels_.end(), [](const Level& level) {
    return std::all_of(level.members.begin(), level.members.end(), [&](const auto& members) {
      return members.size() == level.members.front().size();
    });
  });
}

Levels Levels::far_first() const {
  if (!even()) {
    throw Error(Status::unsupported,
                "levels: the far ones cannot come first where groups are of unequal sizes: a rank "
                "has no counterpart in the smaller ones; take the near ones first");
  }
  std::vector<std::vector<int>> groupings;
  for (int kept = top(); kept > 0; --kept) {  // ranks of equal places at the nearest levels
    groupings.emplace_back();
    for (int rank = 0; rank < p_; ++rank) {
      int label = 0;
      for (int level = 0; level < kept; ++level) label = label * widest(level) + place(level, rank);
      groupings.back().push_back(label);
    }
  }
  return {p_, groupings};
}

std::vector<Crossing> cells_between(const Schedule& schedule, const Levels& levels, int level) {
  if (schedule.p != levels.p()) {
    refuse_levels("they are for " + std::to_string(levels.p()) + " ranks, the schedule for " +
                  std::to_string(schedule.p));
  }
  std::vector<Crossing> crossing(static_cast<std::size_t>(levels.groups(level - 1)));
  for (int rank = 0; rank < schedule.p; ++rank) {
    const Program& program = schedule.programs[static_cast<std::size_t>(rank)];
    const int here = levels.group(level - 1, rank);
    for (const Step& step : program.steps) {
      if (step.op != Op::send) continue;
      for (const int peer : program.peers(step)) {
        const int there = levels.group(level - 1, peer);
        if (there == here) continue;
        crossing[static_cast<std::size_t>(here)].sent += cells_of(program.source(step));
        crossing[static_cast<std::size_t>(there)].received += cells_of(program.source(step));
      }
    }
  }
  return crossing;
}

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// How ranks lie on the machine, and the machine on its network: rank -> socket -> host -> rack,
// with any number of levels. A value.
#pragma once

#include <vector>

#include "schedule/schedule.h"

namespace coll {

// The groups of a level are made of groups of the level below; those of level 0 of ranks. The last
// level is one group of all. Level 0 is where ranks are nearest: what travels "at" a level travels
// between the members of one of its groups. Groups may be of any sizes, and their ranks anywhere.
class Levels {
 public:
  // groupings[g][r]: the number of rank r's group, the finest grouping first; any numbers. Without
  // a grouping there is one level, and all ranks are alike. Throws Error where groups do not nest.
  Levels(int p, const std::vector<std::vector<int>>& groupings);

  // Equal groups of consecutive ranks: {2, 4} are four groups of two.
  static Levels grid(const std::vector<int>& members);

  int p() const { return p_; }
  int depth() const { return static_cast<int>(levels_.size()); }
  int top() const { return depth() - 1; }

  // Groups are numbered by their lowest ranks.
  int groups(int level) const {
    return level < 0 ? p_ : static_cast<int>(of(level).members.size());
  }
  // The groups of the level below that a group is made of.
  const std::vector<int>& members(int level, int group) const {
    return of(level).members[static_cast<std::size_t>(group)];
  }
  // The group that a rank is in; below level 0 it is the rank.
  int group(int level, int rank) const {
    return level < 0 ? rank : of(level).group[static_cast<std::size_t>(rank)];
  }
  // Which member of that group the rank belongs to.
  int place(int level, int rank) const { return of(level).place[static_cast<std::size_t>(rank)]; }
  // Members of the largest group.
  int widest(int level) const;
  // Whether all groups of each level have equally many members.
  bool even() const;

  // The levels in reverse: those that were farthest become the nearest. Throws Error where the
  // levels are not even: then a rank has no counterpart in other groups.
  Levels far_first() const;

 private:
  struct Level {
    std::vector<std::vector<int>> members;
    std::vector<int> group, place;  // of every rank
  };
  const Level& of(int level) const { return levels_[static_cast<std::size_t>(level)]; }
  void add(const std::vector<int>& grouping);

  int p_;
  std::vector<Level> levels_;
};

// What passes the border of a group, in cells of the schedule's chunks.
struct Crossing {
  long sent = 0, received = 0;
};

// For every member of the groups of a level (at the top: for every host, say) what its ranks send
// to ranks outside and receive from there. By number of the group in the level below.
std::vector<Crossing> cells_between(const Schedule& schedule, const Levels& levels, int level);

}  // namespace coll

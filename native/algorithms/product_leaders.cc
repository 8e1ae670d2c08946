// SPDX-License-Identifier: Apache-2.0
// Luo et al., "HAN: a Hierarchical AutotuNed Collective Communication Framework", CLUSTER 2020: one
// rank of each group talks for it, in the groups of the level above.
#include <algorithm>
#include <array>

#include "algorithms/phases.h"
#include "algorithms/product_steps.h"

namespace coll {
namespace {

// The root, where it is in the group; else the lowest rank.
int leader_of(const Levels& levels, int root, int level, int group) {
  if (level < 0) return group;
  if (levels.group(level, root) == group) return root;
  return leader_of(levels, root, level - 1, levels.members(level, group).front());
}

// The leaders of the members of a rank's group, that of the whole group first. Empty for a rank
// that leads none of them.
Team leaders_of(const Levels& levels, int root, int level, int rank) {
  Team team;
  const int group = levels.group(level, rank), first = leader_of(levels, root, level, group);
  for (const int member : levels.members(level, group)) {
    team.ranks.push_back(leader_of(levels, root, level - 1, member));
  }
  const auto find = [&](int wanted) {
    return std::find(team.ranks.begin(), team.ranks.end(), wanted);
  };
  std::rotate(team.ranks.begin(), find(first), team.ranks.end());
  if (find(rank) == team.ranks.end()) return {};
  team.me = static_cast<int>(find(rank) - team.ranks.begin());
  return team;
}

std::vector<int> others_of(const Team& team) {
  std::vector<int> others;
  for (int d = 1; d < team.size(); ++d) others.push_back(team.ahead(d));
  return others;
}

void broadcast_level(Builder& b, int round, LevelPhase phase, const Team& team) {
  if (phase == LevelPhase::binomial) {
    broadcast_binomial_phase(b, round, team);
  } else if (team.me == 0) {
    b.send(round, others_of(team), b.all());
  } else {
    b.recv(round, team.at(0), b.all());
  }
}

void reduce_level(Builder& b, int round, LevelPhase phase, const Team& team) {
  if (phase == LevelPhase::binomial) {
    reduce_binomial_phase(b, round, team);
  } else if (team.me != 0) {
    b.send(round, team.at(0), b.all());
  } else {
    std::vector<int> order = team.ranks;
    order.front() = kSelf;
    b.recv_reduce(round, order, b.all(), Shape::balanced);
  }
}

// Everybody hears of everybody.
void barrier_level(Builder& b, int round, LevelPhase phase, const Team& team) {
  const int n = team.size();
  if (phase == LevelPhase::direct) {
    std::vector<int> order = others_of(team);
    b.send(round, order, b.all());
    order.push_back(kSelf);
    b.recv_reduce(round, order, b.all());
    return;
  }
  for (int reach = 1; reach < n; reach *= 2, ++round) {
    b.send(round, team.ahead(reach), b.all());
    b.recv_reduce(round, team.ahead(-reach), b.all());
  }
}

}  // namespace

void product_of_leaders(Builder& b, Kind kind, const Levels& levels,
                        std::span<const LevelPhase> phases) {
  int round = 0;
  const auto at = [&](int level, auto&& step) {
    const LevelPhase phase = phases[static_cast<std::size_t>(level)];
    const Team team = leaders_of(levels, b.root(), level, b.rank());
    if (team.size() > 1) step(b, round, phase, team);
    round += rounds_of(phase, levels.widest(level));
  };
  const int top = levels.top();
  if (kind != Kind::broadcast) {
    for (int level = 0; level < top; ++level) at(level, reduce_level);
  }
  at(top, kind == Kind::broadcast ? broadcast_level
          : kind == Kind::reduce  ? reduce_level
                                  : barrier_level);
  if (kind != Kind::reduce) {
    for (int level = top - 1; level >= 0; --level) at(level, broadcast_level);
  }
}

}  // namespace coll

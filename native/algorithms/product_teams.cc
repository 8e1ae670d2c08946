// SPDX-License-Identifier: Apache-2.0
// Cho, Finkler, Serrano, Kung & Hunter, "BlueConnect: Decomposing All-Reduce for Deep Learning on
// Heterogeneous Network Hierarchy", MLSys 2019. At each level the owners of the same chunks, one in
// each member of a group, are a team; in BlueConnect each rank is in one. Here in one or more:
// groups need not be of equal sizes.
#include <map>
#include <vector>

#include "algorithms/phases.h"
#include "algorithms/product_steps.h"

namespace coll {
namespace {

// A team, and the chunks that it divides among its members.
struct Shift {
  Team team;
  Blocks blocks;
};

// Those of one rank at one level, in the order of their first chunks: the same on all their
// members.
std::vector<Shift> shifts_of(const Levels& levels, const Shares& shares, int level, int rank,
                             int first) {
  const int group = levels.group(level, rank), me = levels.place(level, rank);
  const std::vector<int>& members = levels.members(level, group);
  std::vector<Shift> shifts;
  if (members.size() < 2) return shifts;
  std::map<std::vector<int>, std::size_t> known;
  const int mine = members[static_cast<std::size_t>(me)];
  std::vector<int> ranks;
  for (int c = 0; c < shares.chunks(); ++c) {
    if (shares.owner(level - 1, mine, c) != rank) continue;
    ranks.clear();
    for (const int member : members) ranks.push_back(shares.owner(level - 1, member, c));
    const auto [found, is_new] = known.try_emplace(ranks, shifts.size());
    if (is_new) shifts.push_back({Team{ranks, me}, Blocks(members.size())});
    const auto taker = static_cast<std::size_t>(shares.member(level, group, c));
    shifts[found->second].blocks[taker].add(first + c, 1);
  }
  return shifts;
}

void reduce_scatter_level(Builder& b, int round, LevelPhase phase, const Shift& shift) {
  switch (phase) {
    case LevelPhase::ring:
      reduce_scatter_ring_phase(b, round, shift.team, shift.blocks);
      break;
    case LevelPhase::circulant:
      reduce_scatter_circulant_phase(b, round, shift.team, shift.blocks);
      break;
    case LevelPhase::halving:
      reduce_scatter_halving_phase(b, round, shift.team, shift.blocks);
      break;
    default:
      reduce_scatter_direct_phase(b, round, shift.team, shift.blocks);
  }
}

void allgather_level(Builder& b, int round, LevelPhase phase, const Shift& shift) {
  switch (phase) {
    case LevelPhase::ring:
      allgather_ring_phase(b, round, shift.team, shift.blocks);
      break;
    case LevelPhase::circulant:
      allgather_circulant_phase(b, round, shift.team, shift.blocks);
      break;
    case LevelPhase::halving:
      allgather_doubling_phase(b, round, shift.team, shift.blocks);
      break;
    default:
      allgather_direct_phase(b, round, shift.team, shift.blocks);
  }
}

}  // namespace

void product_of_teams(Builder& b, Kind kind, const Levels& levels, const Shares& shares,
                      std::span<const LevelPhase> phases, int first) {
  int round = 0;
  const auto at = [&](int level, auto&& step) {
    const LevelPhase phase = phases[static_cast<std::size_t>(level)];
    for (const Shift& shift : shifts_of(levels, shares, level, b.rank(), first)) {
      b.beside(round);
      step(b, round, phase, shift);
    }
    round += rounds_of(phase, levels.widest(level));
  };
  if (kind != Kind::allgather) {
    for (int level = 0; level <= levels.top(); ++level) at(level, reduce_scatter_level);
  }
  if (kind != Kind::reduce_scatter) {
    for (int level = levels.top(); level >= 0; --level) at(level, allgather_level);
  }
}

}  // namespace coll

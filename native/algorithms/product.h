// SPDX-License-Identifier: Apache-2.0
// Hierarchical collectives: one phase per level of the machine, any number of levels.
// Cho, Finkler, Serrano, Kung & Hunter, "BlueConnect: Decomposing All-Reduce for Deep Learning on
// Heterogeneous Network Hierarchy", MLSys 2019; Luo et al., "HAN: a Hierarchical AutotuNed
// Collective Communication Framework", CLUSTER 2020.
#pragma once

#include <optional>
#include <span>

#include "algorithms/levels.h"
#include "schedule/schedule.h"

namespace coll {

// How the members of a group talk. Numeric values are those of the C interface. Allreduce,
// reduce_scatter and allgather take the first four, broadcast, reduce and barrier direct and
// binomial.
enum class LevelPhase : std::int32_t {
  ring,
  circulant,
  direct,
  halving,  // and doubling on the way back: all groups of the level must be powers of two
  binomial
};
inline constexpr int kLevelPhases = 5;

// phases[d] is that of level d. All ranks of a host talk to other hosts ("rails"):
//
// allreduce, reduce_scatter, allgather: the owners of the same chunks (shares.h) are a team. Teams
// reduce-scatter from the nearest level to the farthest, and allgather back. What a host sends to
// others is the least there can be, whatever the sizes of the hosts: each of h hosts sends and
// receives 2(h-1)/h vectors in an allreduce, and a host with k of p ranks (p-k)/p in a
// reduce_scatter, which it sends, or an allgather, which it receives. Where hosts have k ranks
// each, a rank has a k-th of that. Where sizes differ the ranks of a small host are in several
// teams at once, and share its traffic among fewer: a rank alone on its host carries all of it, and
// sends as many messages in a round as the largest host has ranks.
//
// broadcast, reduce, barrier: one leader per group, the root where it is in the group, else the
// lowest rank. Of a broadcast and a reduce one vector passes between hosts for each but the root's.
//
// Throws Error for a kind that has no such form, a phase that does not suit it or the sizes of the
// groups, or phases that are not one per level.
Schedule product(Kind kind, const Levels& levels, int root, std::span<const LevelPhase> phases);

// An allreduce both ways at a time: one half of the vector begins at the nearest level, the other
// at the farthest. In a torus, whose levels have links of their own, each half leaves the other's
// links alone. Its cost is that of product(). Throws Error for what product() does, and where the
// groups of a level are of unequal sizes.
Schedule product_both_ways(const Levels& levels, std::span<const LevelPhase> phases);

// What is claimed, as numbers. Absent where groups are of unequal sizes, for bytes and reductions.
struct ProductCost {
  double rounds = 0;
  std::optional<double> bytes, reductions;
};
ProductCost product_cost(Kind kind, const Levels& levels, std::span<const LevelPhase> phases);

// Messages among n members take so many rounds.
int rounds_of(LevelPhase phase, int n);

}  // namespace coll

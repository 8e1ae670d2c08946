// SPDX-License-Identifier: Apache-2.0
// The phases that larger algorithms are composed of. All have one signature: they work among the
// members of a team, on one block of chunks per member, from a round on, and return the next free
// round. reduce-scatter ends with blocks[me] complete on each member; allgather begins there.
#pragma once

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <vector>

#include "schedule/builder.h"

namespace coll {

inline constexpr int kNobody = -1;  // in the place of a rank

// Some of the ranks, in an order, and my place among them.
struct Team {
  std::vector<int> ranks;
  int me = 0;

  int size() const { return static_cast<int>(ranks.size()); }
  // The rank of the member `distance` places on, cyclically.
  int at(int member) const {
    const int n = size();
    return ranks[static_cast<std::size_t>(((member % n) + n) % n)];
  }
  int ahead(int distance) const { return at(me + distance); }
};

// Everybody, in rank order.
inline Team world(const Builder& b) {
  Team team{.ranks = std::vector<int>(static_cast<std::size_t>(b.p())), .me = b.rank()};
  std::iota(team.ranks.begin(), team.ranks.end(), 0);
  return team;
}

// Everybody, counted from the root.
inline Team rooted(const Builder& b) {
  Team team = world(b);
  std::rotate(team.ranks.begin(), team.ranks.begin() + b.root(), team.ranks.end());
  team.me = (b.rank() - b.root() + b.p()) % b.p();
  return team;
}

// blocks[j]: the chunks of member j.
using Blocks = std::vector<Chunks>;

// The chunks in `parts` equal blocks.
inline Blocks split(const Chunks& chunks, int parts) {
  Blocks blocks;
  for (int j = 0; j < parts; ++j) blocks.push_back(chunks.part(j, parts));
  return blocks;
}

// Of a vector in which every rank owns one chunk: those of the members.
inline Blocks parts_of(const Team& team) {
  Blocks blocks;
  for (const int rank : team.ranks) blocks.emplace_back(rank, 1);
  return blocks;
}

// Blocks of `count` members from `first` on, cyclically.
inline Chunks cyclic(const Blocks& blocks, int first, int count) {
  const int n = static_cast<int>(blocks.size());
  Chunks out;
  for (int i = 0; i < count; ++i) {
    out.add(blocks[static_cast<std::size_t>((((first + i) % n) + n) % n)]);
  }
  return out;
}

inline int floor_log2(int p) { return std::bit_width(static_cast<unsigned>(p)) - 1; }
inline int ceil_log2(int p) { return p <= 1 ? 0 : floor_log2(p - 1) + 1; }
// The largest power of two <= p.
inline int power_below(int p) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(p))); }

// Chunks that a pipeline has on their way at a time: enough to hide the depth of dozens of ranks.
inline constexpr int kPipeline = 8;
inline int one_pipeline(int) { return kPipeline; }
inline int two_pipelines(int) { return 2 * kPipeline; }

// A whole algorithm of one round: all publish, and all fold everything in the order of ranks.
void one_shot(Builder& b);

int reduce_scatter_ring_phase(Builder& b, int round, const Team& team, const Blocks& blocks);
int allgather_ring_phase(Builder& b, int round, const Team& team, const Blocks& blocks);
int reduce_scatter_circulant_phase(Builder& b, int round, const Team& team, const Blocks& blocks);
int allgather_circulant_phase(Builder& b, int round, const Team& team, const Blocks& blocks);
// Teams of a power of two: half of what is left to a partner; all that both have.
int reduce_scatter_halving_phase(Builder& b, int round, const Team& team, const Blocks& blocks);
int allgather_doubling_phase(Builder& b, int round, const Team& team, const Blocks& blocks);
int reduce_scatter_direct_phase(Builder& b, int round, const Team& team, const Blocks& blocks);
int allgather_direct_phase(Builder& b, int round, const Team& team, const Blocks& blocks);

// The same among all members of a team, to or from its member 0. What is gathered or scattered is
// one block per member.
int broadcast_binomial_phase(Builder& b, int round, const Team& team);
int reduce_binomial_phase(Builder& b, int round, const Team& team);
int gather_binomial_phase(Builder& b, int round, const Team& team, const Blocks& blocks);
int scatter_binomial_phase(Builder& b, int round, const Team& team, const Blocks& blocks);

// For algorithms that suit not all numbers of ranks: the first pairs of neighbours merge their
// vectors, one of each pair is among the `members` that take part in `body` for so many rounds, and
// hands `back` to the other. At most half of the ranks may be too many. Rank order is kept.
void fold_neighbours(Builder& b, int members, int rounds, const Chunks& back,
                     const std::function<void(int round, const Team& team)>& body);

}  // namespace coll

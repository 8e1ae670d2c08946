// SPDX-License-Identifier: Apache-2.0
// Who sums what, index by index, so that as few values travel as can. The ranks share out the
// vector in stretches; whoever has been told of all indices of a stretch settles how their values
// will go:
// * owners: an index belongs to one of the ranks that give it, to which the other givers send, and
//   which sends the sum to all that ask: givers - 1 + askers - 1 values, in two rounds, or in the
//   first one where nobody else gives it. A range of the vector for each rank (Kylix) takes one or
//   two more, as owners give nothing themselves.
// * direct: all givers send to all askers, in one round.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sparse/plan_round.h"

namespace coll {

enum class Sharing : std::uint8_t { owners, direct };

// A round between machines takes as long as thousands of bytes.
enum class Between : std::uint8_t { cores, machines };

// Values that a rank gives, sends and gets.
struct ShareTraffic {
  struct Way {
    std::uint64_t out = 0, in = 0;
  };
  std::uint64_t given = 0;
  Way first, second;  // of owners, by round
  Way direct;
};

// The same answer on all ranks, from what the ranks have told of each stretch: by stretch, then by
// rank.
Sharing cheapest_sharing(std::span<const ShareTraffic> told, int ranks, Between between);

// Values of a block, where one round of all ranks goes as an alltoall of equal blocks, which saves
// the messages, and in the first round a step; 0: it does not. `told`: of each rank, so that all
// answer the same.
std::size_t block_of(std::span<const RoundSends> told) noexcept;

class StretchShares {
 public:
  // By rank: the indices of this stretch that it gives, and that it asks for; at most
  // 256 ranks.
  StretchShares(std::span<const Indices> given, std::span<const Indices> asked);

  const std::vector<ShareTraffic>& traffic() const noexcept { return traffic_; }
  // By rank: its part in the rounds, places counted within this stretch.
  std::vector<std::vector<StretchRound>> rounds(Sharing sharing) const;

 private:
  // A rank and the place of an index in its list.
  struct Side {
    std::uint8_t rank;
    std::uint32_t place;
  };
  struct Index {
    std::uint32_t givers_end, askers_end;  // the ends of its own among all
    std::uint8_t owner;
  };

  void unite(std::span<const Indices> given, std::span<const Indices> asked);
  void settle();
  std::uint8_t owner_of(std::span<const Side> givers, std::span<const Side> askers) const;
  template <class Visit>
  void for_each(Visit visit) const;

  std::size_t ranks_;
  std::vector<Side> givers_, askers_;
  std::vector<Index> indices_;  // that somebody gives and somebody asks for
  std::vector<ShareTraffic> traffic_;
};

// What a rank is told of a stretch, as a message, and back. Throws Error(internal) for what is
// none.
std::vector<std::uint32_t> words_of(const std::vector<StretchRound>& rounds);
std::vector<StretchRound> rounds_of(std::span<const std::uint32_t> words, int ranks);

// The stretches after each other: those of stretch o are in this rank's lists from given[o] to
// given[o + 1], and from asked[o] to asked[o + 1]. Throws Error(internal) where they are not.
std::vector<PlanRound> joined(std::span<const std::vector<StretchRound>> stretches,
                              std::span<const std::size_t> given,
                              std::span<const std::size_t> asked, int me);

}  // namespace coll

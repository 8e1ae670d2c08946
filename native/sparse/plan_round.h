// SPDX-License-Identifier: Apache-2.0
// A round of a plan for sums at known indices: values are picked out of a list and go to others,
// who add them up in a list of their own, which is the one that the next round picks from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sparse/place_list.h"

namespace coll {

using Indices = std::vector<std::uint64_t>;      // ascending, none twice
using IndexPlaces = std::vector<std::uint32_t>;  // in a list

struct PlanRound {
  std::vector<int> team;  // ascending; this rank is one of them
  int me = 0;
  // By member: the values that go to it, and where those are added that come from it. What is
  // empty on one side is so on the other, and nothing is sent.
  std::vector<PlaceList> send, land;
  std::size_t room = 0;  // values of the list that comes to be; zeros before
  // Where not 0: no rank of the team, which is of all, sends more values to any other, so that the
  // round may go as one alltoall of blocks of so many.
  std::size_t block = 0;
};

// The part of a round that is of a stretch of the vector.
struct StretchRound {
  std::vector<IndexPlaces> send, land;  // by rank
  std::size_t room = 0;
};

// Values that a rank sends in a round: to one other at most, and to all together.
struct RoundSends {
  std::uint64_t most = 0, all = 0;
};

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Zhao & Canny, "Kylix: A Sparse Allreduce for Commodity Clusters", ICPP'14: a nested butterfly of
// layers of any degrees. In each layer the ranks that differ in one digit share out the stretch of
// the vector that they have in common.
#pragma once

#include <cstdint>
#include <vector>

namespace coll {

struct ButterflyLayer {
  std::vector<int> team;              // ranks, in the order of the parts that they get
  int me = 0;                         // this rank's place in it
  std::vector<std::uint64_t> bounds;  // of the parts
};

// What one of p ranks does: degrees from the first layer on, whose product is p. `bounds`, p + 1 of
// them, are of the stretches that the ranks end with, along the vector. No layer for one rank.
std::vector<ButterflyLayer> butterfly(const std::vector<int>& degrees, int rank,
                                      const std::vector<std::uint64_t>& bounds);

// So many ranks exchange with one another.
inline constexpr int kFewRanks = 16;

// Degrees for p ranks: one layer while these are few, else two, the first one wider, since what
// ranks have in common shrinks what is left for the next.
std::vector<int> usual_degrees(int p);

}  // namespace coll

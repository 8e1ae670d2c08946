// SPDX-License-Identifier: Apache-2.0
// The binomial tree of negabinary distances. De Sensi et al., "Bine Trees: Enhancing Collective
// Operations by Optimizing Communication Locality", SC 2025.
#pragma once

#include <vector>

#include "algorithms/phases.h"

namespace coll {

// One rank's part in a broadcast from the root; a reduce is the same backwards.
struct BineRank {
  int parent = kNobody;       // who sends to it, in the round before its own first
  int first = 0;              // the round in which it sends to its first child
  std::vector<int> children;  // one in each round from there on
};

// The root's range of neighbours on both sides is cut in halves; a member of the far one gets the
// vector, and is to its own half, mirrored, what the root is to the near one. So the farthest are
// (1 - (-2)^s) / 3 places away where there are 2^s, a third of all. The paper's tree is for powers
// of two; here halves may differ by one, for any number of ranks.
BineRank bine_rank(const Builder& b);

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
#include "algorithms/bine_tree.h"

namespace coll {
namespace {

// Ranges grow to the right and to the left in turns.
bool grows_right(int n) { return ceil_log2(n) % 2 != 0; }

// The lowest of n places around place 0.
int lowest(int n) {
  int low = 0;
  for (; n > 1; n -= n / 2) low -= grows_right(n) ? 0 : n / 2;
  return low;
}
int highest(int n) { return lowest(n) + n - 1; }

// The place in the far half of n that is to it what place 0 is to the near one, mirrored: their
// ranges adjoin.
int counterpart(int n) {
  const int far = n / 2, near = n - far;
  return grows_right(n) ? highest(near) + 1 + highest(far) : lowest(near) - 1 + lowest(far);
}

}  // namespace

BineRank bine_rank(const Builder& b) {
  const int p = b.p();
  const auto rank_at = [&](int place) { return (((b.root() + place) % p) + p) % p; };
  int me = (b.rank() - b.root() + p) % p;  // my place, seen from who has the vector in my range
  if (me > highest(p)) me -= p;
  BineRank mine;
  int has = 0, way = 1;  // its place, and whether it sees the ranks mirrored
  for (int n = p, round = 0; n > 1; ++round) {
    const int other = counterpart(n), far = n / 2;
    const int least = other < 0 ? lowest(n) : highest(n) - far + 1;
    const int peer = rank_at(has + way * other);
    if (me == 0) mine.children.push_back(peer);
    if (me < least || me >= least + far) {
      n -= far;
      continue;
    }
    if (me == other) {
      mine.parent = rank_at(has);
      mine.first = round + 1;
    }
    has += way * other;
    way = -way;
    me = other - me;
    n = far;
  }
  return mine;
}

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Who answers for which chunk in each group of a hierarchy.
#pragma once

#include <vector>

#include "algorithms/levels.h"
#include "schedule/schedule.h"

namespace coll {

// In every group of every level each chunk has one owner: the rank that holds the group's sum of it
// when the levels up to there are reduced. A chunk has a fraction for each level, and a group of m
// members gives it to the m-th part of [0, 1) that the fraction lies in; the member's own owner of
// the chunk is the group's. So a group of any size has an owner for each chunk, and owners in
// groups of equal sizes are counterparts.
//
// Where ranks own parts of the vector (reduce_scatter, allgather), the fractions of rank r's chunks
// are the places where r itself lies: so its owner among all is r, whatever the numbering of ranks.
// A part is cut in `own` chunks where groups are of unequal sizes: 3 + 1 ranks take 3, so that each
// of three ranks hands a third to the one. Else the vector is cut, at each level, in as many parts
// as its groups have members, or somewhat more where these differ: 3 + 2 take 6, of which each of
// three ranks has two and each of two three.
class Shares {
 public:
  Shares(Kind kind, const Levels& levels);

  int chunks() const { return chunks_; }
  // Index of the member that the chunk falls to.
  int member(int level, int group, int chunk) const {
    const int size = static_cast<int>(levels_.members(level, group).size());
    const Fraction f = fractions_[index(level)][index(chunk)];
    return static_cast<int>(static_cast<long>(f.over) * size / f.under);
  }
  // The rank that it falls to; below level 0 a group is a rank.
  int owner(int level, int group, int chunk) const {
    return level < 0 ? group : owners_[index(level)][index(group)][index(chunk)];
  }

 private:
  struct Fraction {
    int over, under;
  };
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  void cut_vector();
  void cut_parts();
  void find_owners();

  const Levels& levels_;
  int chunks_ = 1;
  std::vector<std::vector<Fraction>> fractions_;       // [level][chunk]
  std::vector<std::vector<std::vector<int>>> owners_;  // [level][group][chunk]
};

}  // namespace coll

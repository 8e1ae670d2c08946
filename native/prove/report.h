// SPDX-License-Identifier: Apache-2.0
// What a proof found out.
#pragma once

#include <cstddef>
#include <string>

namespace coll {

// One bit per property; numeric values are those of coll_check.
enum Check : unsigned {
  kStructure = 1,
  kMatching = 2,
  kDefined = 4,
  kResult = 8,
  kInput = 16,
  kCost = 32,
  kTree = 64,
  kAllChecks = 127
};

// The rank and step, or the rank and chunk, that a number or a class was taken from.
struct Witness {
  int rank = -1;
  std::size_t at = 0;
};

struct Report {
  explicit Report(unsigned checks_wanted = kAllChecks) : checks(checks_wanted) {}

  unsigned checks;      // what is looked at
  bool proved = true;   // nothing wrong by these checks
  std::string message;  // the first thing wrong
  int rounds = 0;
  double bytes = 0, reductions = 0;
  bool same_on_ranks = true, same_in_vector = true, rank_order = true;
  bool canonical = true, one_fold = true;
  // Steps: of the last round, of the busiest sender, of the busiest adder. Chunks: the first whose
  // tree differs from another rank's, from chunk 0's, is not in rank order, is not the canonical
  // one (value.h), or is folded by more than one op.
  Witness last_round, most_bytes, most_reductions;
  Witness other_on_ranks, other_in_vector, out_of_order, not_canonical, more_folds;

  bool wants(Check check) const { return (checks & check) != 0; }
  // True where this is the first fault of interest: only then is its text worth making.
  bool first(Check check) {
    if (!wants(check) || !proved) return false;
    proved = false;
    return true;
  }
};

}  // namespace coll

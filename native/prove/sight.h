// SPDX-License-Identifier: Apache-2.0
// From when on the others can see what a rank of a played plan has stored. Ordinary stores: as soon
// as they hear of the op. Non-temporal ones: of the rank's next fence.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "plan/plan.h"

namespace coll {

class Sight {
 public:
  static constexpr int kNever = std::numeric_limits<int>::max();

  explicit Sight(const Plan& plan) : plan_(plan), ranks_(plan.ranks.size()) {}

  // An op ends at this time of the rank's own clock.
  void finish(int rank, int op, int time) {
    if (plan_.stores == Stores::ordinary) return;
    Times& mine = ranks_[static_cast<std::size_t>(rank)];
    mine.seen.resize(static_cast<std::size_t>(time) + 1, kNever);
    const RankPlan& plan = plan_.ranks[static_cast<std::size_t>(rank)];
    // What the caller has stored before its ENTRY it has stored as usual.
    if (op == 0) mine.seen.back() = time;
    if (!plan.ops[static_cast<std::size_t>(op)].fence) return;
    for (; mine.fenced < mine.seen.size(); ++mine.fenced) {
      int& seen = mine.seen[mine.fenced];
      if (seen == kNever) seen = time;
    }
  }

  // Who knows of this time of the rank's clock sees what it stored at `time`.
  int of(int rank, int time) const {
    if (plan_.stores == Stores::ordinary) return time;
    const Times& theirs = ranks_[static_cast<std::size_t>(rank)];
    const auto at = static_cast<std::size_t>(time);
    return at < theirs.seen.size() ? theirs.seen[at] : kNever;
  }

 private:
  struct Times {
    std::vector<int> seen;  // by the time of the store
    std::size_t fenced = 0;
  };

  const Plan& plan_;
  std::vector<Times> ranks_;
};

}  // namespace coll

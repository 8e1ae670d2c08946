// SPDX-License-Identifier: Apache-2.0
// What an algorithm says of itself, and what holds a proof to it.
#pragma once

#include <optional>

#include "prove/report.h"

namespace coll {

// As numbers for some p. Absent: not claimed.
struct Claims {
  std::optional<double> rounds, bytes, reductions;
  bool same_on_ranks = false, same_in_vector = false, rank_order = false;
  bool canonical = false, one_fold = false;
};

// Summation trees are where the report says that the results' trees lie: schedules and plans.
void hold_to_trees(const Claims& claims, Report& report);

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// The post-condition of a collective, and the class of its summation trees. Shared by the proofs of
// schedules and of plans.
#pragma once

#include <vector>

#include "prove/report.h"
#include "prove/value.h"
#include "schedule/cells.h"
#include "schedule/layout.h"

namespace coll {

// What every cell holds at the end.
struct Outcome {
  const Layout& layout;
  const Cells& cells;
  const std::vector<Value>& values;
  const Algebra& algebra;
};

// Every output cell holds each contribution exactly once; every input cell what it held before.
void judge_outcome(const Outcome& outcome, Report& report);

}  // namespace coll

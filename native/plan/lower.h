// SPDX-License-Identifier: Apache-2.0
// From schedule to plan: decides where the bytes of each message lie. Every wait is derived from
// the accesses that follow from it (waits.h), never written; fences follow from the posts
// (fences.h).
#pragma once

#include "plan/plan.h"
#include "schedule/schedule.h"

namespace coll {

struct Lowering {
  Mode mode = Mode::staged;
  int depth = 4;       // slots per rank
  int lag = 0;         // tiles between one phase of a round and the next: software pipelining
  bool mixed = false;  // pull, push: of each buffer the call decides; else all are within reach
  Stores stores = Stores::ordinary;
  bool apart = false;  // for calls in which no rank's input lies where its output does
};

// The schedule must have been proved. A message that cannot be pulled or pushed (its cells are
// overwritten or read in its own round) is staged. Looks up (base/looks.h).
Plan lower(const Schedule& schedule, const Lowering& how);

}  // namespace coll

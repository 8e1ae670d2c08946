// SPDX-License-Identifier: Apache-2.0
// Proves a schedule: one symbolic run, round by round. Each rank is deterministic and sequential by
// round, receives block, channels are first-in first-out: a Kahn network, whose result does not
// depend on timing. So one run speaks for all asynchronous executions, and matching inside a round
// excludes deadlock whatever the slots, even with rendezvous.
#pragma once

#include <optional>

#include "prove/report.h"
#include "prove/value.h"
#include "schedule/schedule.h"

namespace coll {

// What a schedule says of itself, as numbers for its p. Absent: not claimed.
struct Claims {
  std::optional<double> rounds, bytes, reductions;
  bool same_on_ranks = false, same_in_vector = false, rank_order = false;
};

Report prove(const Schedule& schedule, bool in_place, const Claims& claims,
             unsigned checks = kAllChecks);

}  // namespace coll

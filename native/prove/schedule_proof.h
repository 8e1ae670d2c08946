// SPDX-License-Identifier: Apache-2.0
// Proves a schedule: one symbolic run, round by round. Each rank is deterministic and sequential by
// round, receives block, channels are first-in first-out: a Kahn network, whose result does not
// depend on timing. So one run speaks for all asynchronous executions, and matching inside a round
// excludes deadlock whatever the slots, even with rendezvous.
#pragma once

#include "prove/claims.h"
#include "prove/report.h"
#include "prove/value.h"
#include "schedule/schedule.h"

namespace coll {

Report prove(const Schedule& schedule, bool in_place, const Claims& claims,
             unsigned checks = kAllChecks);

}  // namespace coll

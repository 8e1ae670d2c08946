// SPDX-License-Identifier: Apache-2.0
// How a rank waits: spin a bounded time, then yield, then sleep on a futex, at most 50 ms at a
// time. Spinning alone is a million times slower where ranks share cores; only the sleeping rung
// looks at clocks, signals and dead peers.
#pragma once

#include "engine/executor.h"
#include "transport/segment.h"

namespace coll {

struct WaitPolicy {
  int spins = 1000;  // pauses at each wait
  int yields = 20;
};

// What suits so many ranks on the cores that they may use now.
WaitPolicy choose_policy(Segment segment);

// Sleeps until the wait may be met, a signal comes, or so many microseconds have passed. Returns
// whether a signal came.
bool sleep_on(const Segment& segment, const Blocked& wait, int microseconds) noexcept;

}  // namespace coll

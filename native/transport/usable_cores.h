// SPDX-License-Identifier: Apache-2.0
// The cores that ranks may use, the first 64, as bits.
#pragma once

#include <cstdint>

#include "transport/segment.h"

namespace coll {

// Of the calling thread.
std::uint64_t usable_cores() noexcept;
// The same as it was in one of the last calls: to ask takes as long as two ranks need for a small
// sum.
std::uint64_t usable_cores_of_late() noexcept;

// What the ranks of a group have between them, by what these say now.
int cores_between(const Segment& segment) noexcept;
// The same where these are fewer than the ranks; 0: each can have one of its own.
int shared_cores(const Segment& segment) noexcept;

// Of a rank that enters a group.
void enter_cores(WatchLine& watch) noexcept;
// Whether the ranks of a group must share cores, by what these say now: there are more ranks than
// cores in all, or two are pinned to one.
bool share_cores(const Segment& segment) noexcept;
// Whether they must have when they entered, as all have: the same on all of them and for ever,
// whatever threads are pinned to since.
bool entered_crowded(const Segment& segment) noexcept;
// Whether each was pinned to one core then, and to another one than the rank before it.
bool entered_in_turns(const Segment& segment) noexcept;

}  // namespace coll

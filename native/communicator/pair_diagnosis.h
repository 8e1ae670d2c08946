// SPDX-License-Identifier: Apache-2.0
// The sentences of message calls: what was wrong with a message, and whom a call waits for in vain.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "communicator/diagnosis.h"
#include "mailbox/mailbox.h"

namespace coll {

// "recv from rank 1 (tag 3)"; "probe of any rank (any tag)"
std::string in_words(const WaitNote& note);

// The same of a step of a collective by messages, "adasum #3"; of a call of its own as it is.
Cause in_step_of(std::string_view call, Cause cause);

// What waits for a message that was longer than its room.
std::string too_long(const Request& request);
// What a fault of the mailbox of `rank` says to all.
Cause cause_of(const Fault& fault, int rank);
// The rank, or one of those, that `rank` waits for and that died or left.
std::optional<Cause> find_lost(const Segment& segment, int rank, const WaitNote& note);
// What the rank that `rank` waits for is doing; `stray` is a message from it that nobody asked for.
std::string whereabouts(const Segment& segment, int rank, const WaitNote& note,
                        const std::optional<Found>& stray);

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// A message that waits for a rank that is in a collective which waits for this one. Whoever is in a
// collective can send and receive nothing new, so what it says of its messages holds until the
// other rank comes to the call: such a deadlock is not guessed from a time that has passed, but
// known.
#pragma once

#include <optional>

#include "communicator/diagnosis.h"
#include "communicator/record.h"
#include "mailbox/mailbox.h"

namespace coll {

// Whether `rank` leaves a call of this note only after `other` has come to it: what it gets is made
// of what that one hands in. Unequal parts may be empty, and notes do not say which.
bool needs(const CallNote& call, int rank, int other) noexcept;

// A rank that another one waits for, and the call that it is in.
struct Held {
  int rank;
  CallNote call;
};

// The two calls in words. `others`: a message of any rank would do, and no other rank can send one.
Cause deadlock(int rank, const WaitNote& note, const Held& held, bool others);

// That `rank` waits for what no rank can do before it comes to their calls. It holds where nothing
// is found to have come either: look after this.
std::optional<Cause> find_deadlock(const Segment& segment, int rank, const WaitNote& note);

}  // namespace coll

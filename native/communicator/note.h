// SPDX-License-Identifier: Apache-2.0
// From a call to what is to be chosen for it, and to what is told of it.
#pragma once

#include "communicator/call.h"
#include "communicator/given.h"
#include "communicator/record.h"
#include "select/choose.h"

namespace coll {

// What the caller leaves to the choice, and what not.
Wish wish_of(const Call& call) noexcept;

// A schedule from outside the table must be one for this call. Throws Error.
void check_given(const Call& call, const GivenSchedules& known);

// Blocks of alltoall that are passed on through other ranks must be of one size. Throws Error.
void check_blocks(const Call& call, bool passed_on);

// A valid call as it is made: narrow floats that are to be reproducible and that a named algorithm
// folds more than once keep their partial results in float32.
Call settled(const Call& call, const GivenSchedules& known);

// How a call is made: its algorithm, and a Mode, or kByMessages.
struct Made {
  int algorithm, mode;
  std::uint64_t table = 0;  // of measured choices
};
// All but its number and fingerprint.
CallNote note_of(const Call& call, int ranks, const Made& made, const GivenSchedules& known);

}  // namespace coll

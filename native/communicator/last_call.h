// SPDX-License-Identifier: Apache-2.0
// What is told of calls: the event of one that is recorded, and the last collective.
#pragma once

#include "communicator/pair_call.h"
#include "communicator/record.h"
#include "engine/watch.h"

namespace coll {

struct LastCall {
  Event call;  // without times
  double seconds = 0, waiting = 0;
};

// A collective, but for its times: its bytes are those of the whole vector; of alltoall those that
// one rank hands in.
Event event_of(const CallNote& note, int ranks) noexcept;

// A message call, but for its times and number; `posts`: it does not wait. The bytes of a receive
// are those that it has room for.
Event event_of(const PairCall& call, bool posts) noexcept;

// `call` as it ran; the seconds are 0 where the watch told no times.
LastCall last_call(Event call, int algorithm, int mode, const Watch& watch) noexcept;

}  // namespace coll

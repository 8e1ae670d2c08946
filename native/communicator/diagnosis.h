// SPDX-License-Identifier: Apache-2.0
// Finds out why a call does not end, for the slow rung of waiting and for close().
#pragma once

#include <cstdint>
#include <optional>

#include "communicator/record.h"
#include "transport/failure.h"
#include "transport/liveness.h"
#include "transport/segment.h"

namespace coll {

// What one rank knows of its own present call.
struct OwnCall {
  int rank;
  CallNote note;
  std::uint64_t end;  // tick that a rank has reached once it has finished it
};

struct Cause {
  Status status;
  int culprit;
  std::string text;
};

// Where the ranks differ, but no more in what their records hold.
inline constexpr char kLongAgo[] = "the ranks made different calls, longer ago than is remembered";

// Where a rank calls something else, and has not been in any call since that was noticed.
inline constexpr std::string_view kNotSaid =
    ", and has not said which, as it is in no call any more";

// What a rank does that lets go of a communicator for one of those that live.
inline constexpr char kRevoked[] =
    " revoked this communicator: shrink() makes one of the ranks that live";

// A rank and what it calls.
struct Caller {
  int rank, world;
  const CallNote& note;
};

// Two notes of the same number that differ.
Cause disagreement(const Caller& self, const Caller& peer);

// A peer that makes another call than we do, or did so before; nothing where all known calls agree.
std::optional<Cause> find_mismatch(const Segment& segment, const OwnCall& own);

// A peer that died or left before it had finished our call.
std::optional<Cause> find_lost(const Segment& segment, const OwnCall& own);

// A peer that died.
std::optional<Cause> find_dead(const Segment& segment, int rank);
// Whether this one did.
std::optional<Cause> find_dead_peer(const Segment& segment, int peer);

// Why a call of this rank cannot be done: an operation of the user has failed, or peers' memory is
// unmapped.
Cause failed_here(int rank, const CallNote& note, bool unmapped);

// Or the kernel does not let it read their memory any more.
Cause unread_peer(int rank, const CallNote& note);

// "rank 1 (pid 99) died"
std::string how_it_left(const Segment& segment, int peer, Life life);

// ", but called barrier #3, which rank 0 has not" where the peer is ahead of `rank`; else nothing.
std::string ahead(const Segment& segment, int rank, int peer);

// What the peer that we wait for is doing, for the text of a time-out.
std::string whereabouts(const Segment& segment, const OwnCall& own, int peer);

// The ranks that have not begun our call, but `named`, in words that follow those of whereabouts();
// "" none.
std::string absent_beside(const Segment& segment, const OwnCall& own, int named);
// As that, of ranks that are known: "; ranks 3, 5 have not come to this call either", or, where
// `one_is_here`, not "either".
std::string absent_in_words(const std::vector<int>& absent, bool one_is_here);

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
#include "communicator/deadlock.h"

#include <string>

#include "communicator/pair_diagnosis.h"
#include "transport/liveness.h"

namespace coll {
namespace {

// The call that the peer is in, where it does nothing for this message before that is done.
std::optional<Held> held(const Segment& segment, int rank, const WaitNote& note, int peer) {
  const Answer answer = answer_of(segment, peer, rank);
  if (answer.call <= calls_begun(segment, rank)) return std::nullopt;
  if (note.what == Waits::send ? answer.receives : answer.sends) return std::nullopt;
  const auto call = read_record(segment, peer, answer.call);
  if (!call || !needs(*call, peer, rank)) return std::nullopt;
  return Held{peer, *call};
}

}  // namespace

bool needs(const CallNote& call, int rank, int other) noexcept {
  const auto kind = static_cast<Kind>(call.kind);
  if (kind == Kind::barrier) return true;
  if (call.count == 0 || call.parts) return false;
  switch (kind) {
    case Kind::reduce:
    case Kind::gather:
      return rank == call.root;
    case Kind::broadcast:
    case Kind::scatter:
      return other == call.root;
    case Kind::scan:
    case Kind::exscan:
      return other < rank;
    default:
      return true;
  }
}

Cause deadlock(int rank, const WaitNote& note, const Held& held, bool others) {
  const std::string self = "rank " + std::to_string(rank);
  const std::string peer = "rank " + std::to_string(held.rank);
  const bool sends = note.what == Waits::send;
  return {Status::mismatch, held.rank,
          in_words(note) + ": the ranks wait for each other: " + self + " in this message, and " +
              peer + " in " + label(held.call) + ", " + describe(held.call) + ", which needs " +
              self + "; " + peer + " has " +
              (sends ? "no receive for it" : "no message for it on its way") +
              (others ? ", nor has any other rank" : "")};
}

std::optional<Cause> find_deadlock(const Segment& segment, int rank, const WaitNote& note) {
  if (note.peer == rank) return std::nullopt;
  if (note.peer != kAny) {
    const auto peer = held(segment, rank, note, note.peer);
    return peer ? std::optional(deadlock(rank, note, *peer, false)) : std::nullopt;
  }
  std::optional<Held> first;
  const int ranks = static_cast<int>(segment.shape().ranks);
  for (int other = 0; other < ranks; ++other) {
    if (other == rank || life_of(segment, other) == Life::closed) continue;
    const auto peer = held(segment, rank, note, other);
    if (!peer) return std::nullopt;
    if (!first) first = peer;
  }
  return first ? std::optional(deadlock(rank, note, *first, ranks > 2)) : std::nullopt;
}

}  // namespace coll

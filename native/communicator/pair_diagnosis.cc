// SPDX-License-Identifier: Apache-2.0
#include "communicator/pair_diagnosis.h"

#include "communicator/call.h"
#include "communicator/pair_call.h"
#include "transport/liveness.h"

namespace coll {
namespace {

std::string rank_in_words(int rank) {
  return rank == kAny ? "any rank" : "rank " + std::to_string(rank);
}

std::string tag_in_words(int tag) {
  if (tag == kStepsTag) return " (of a collective by messages)";
  return tag == kAny ? " (any tag)" : " (tag " + std::to_string(tag) + ")";
}

bool gone(Life life) { return life == Life::dead || life == Life::closed; }

}  // namespace

std::string in_words(const WaitNote& note) {
  static constexpr const char* kWhat[] = {"nothing", "send to ", "recv from ", "probe of "};
  return kWhat[static_cast<std::size_t>(note.what)] + rank_in_words(note.peer) +
         tag_in_words(note.tag);
}

Cause in_step_of(std::string_view call, Cause cause) {
  if (!call.empty()) cause.text = std::string(call) + ": " + cause.text;
  return cause;
}

std::string too_long(const Request& request) {
  Envelope room = request.envelope;
  room.bytes = request.room;
  return in_words({Waits::recv, request.source, request.envelope.tag}) + ": the message has " +
         elements_in_words(request.envelope) + ", but the array has room for " +
         std::to_string(elements_of(room)) +
         ": nothing was written and the message is lost; pass a longer array (probe tells how "
         "long)";
}

Cause cause_of(const Fault& fault, int rank) {
  const std::string from = in_words({Waits::recv, fault.source, fault.envelope.tag}) + ": ";
  const std::string sender = "rank " + std::to_string(fault.source);
  const std::string receiver = "rank " + std::to_string(rank);
  if (fault.trouble == Trouble::other_dtype) {
    return {Status::mismatch, fault.source,
            from + sender + " sends " + elements_in_words(fault.envelope) + ", " + receiver +
                " receives " + name_of(static_cast<Dtype>(fault.request->envelope.dtype))};
  }
  if (fault.trouble == Trouble::no_memory) {
    return {
        Status::out_of_memory, rank,
        from + receiver + " has no memory to set " + elements_in_words(fault.envelope) +
            " aside, which were sent before what it waits for: receive in the order of sending"};
  }
  return {Status::internal, fault.source,
          "the messages from " + sender + " to " + receiver +
              " were overwritten: some rank writes where it should not"};
}

std::optional<Cause> find_lost(const Segment& segment, int rank, const WaitNote& note) {
  const auto lost = [&](int peer, Life life) {
    return Cause{Status::peer_lost, peer, in_words(note) + ": " + how_it_left(segment, peer, life)};
  };
  if (note.peer != kAny) {
    const Life life = life_of(segment, note.peer);
    if (gone(life)) return lost(note.peer, life);
    return std::nullopt;
  }
  // Whoever is there may still send; but who died may have been the one.
  int left = 0, last = kAny;
  const int ranks = static_cast<int>(segment.shape().ranks);
  for (int peer = 0; peer < ranks; ++peer) {
    if (peer == rank) continue;
    const Life life = life_of(segment, peer);
    if (life == Life::dead) return lost(peer, life);
    if (life != Life::closed) continue;
    ++left;
    last = peer;
  }
  if (left == 0 || left < ranks - 1) return std::nullopt;
  Cause cause = lost(last, Life::closed);
  if (left > 1) cause.text += ", as all others have";
  return cause;
}

std::string whereabouts(const Segment& segment, int rank, const WaitNote& note,
                        const std::optional<Found>& stray) {
  if (note.peer == kAny) return "no rank has sent a message that fits";
  const std::string who = "rank " + std::to_string(note.peer);
  if (note.peer == rank) return "a rank that waits for itself waits in vain";
  if (stray) {
    return who + " has sent a message with tag " + std::to_string(stray->envelope.tag) +
           ", which no recv asks for, and none that fits";
  }
  const WaitNote theirs = waits_of(segment, note.peer);
  if (theirs.what != Waits::nothing) {
    const bool crossed =
        theirs.what == note.what && theirs.what == Waits::send && theirs.peer == rank;
    return who + " is itself blocked in " + in_words(theirs) +
           (crossed ? ": where two ranks send to each other, use sendrecv or isend" : "");
  }
  const std::string what = note.what == Waits::send ? "received it" : "sent a message that fits";
  return who + " is alive and has not " + what + ahead(segment, rank, note.peer);
}

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
#include "communicator/diagnosis.h"

#include <algorithm>

#include "bootstrap/words.h"
#include "communicator/call.h"
#include "communicator/pair_diagnosis.h"

namespace coll {
namespace {

int world_of(const Segment& segment, int rank) noexcept {
  return segment.rank(rank).watch.world.load(std::memory_order_relaxed);
}

std::string rank_in_words(const Caller& caller) {
  std::string rank = "rank " + std::to_string(caller.rank);
  if (caller.world == caller.rank) return rank;
  return rank + " (rank " + std::to_string(caller.world) + " of the world)";
}

// The oldest remembered call in which the two ranks differ.
std::optional<Cause> compare(const Segment& segment, const OwnCall& own, int peer) {
  const std::uint64_t last = std::min(own.note.number, calls_begun(segment, peer));
  for (std::uint64_t back = kRecords; back-- > 0;) {
    if (back >= last) continue;
    const std::uint64_t number = last - back;
    const auto mine = read_record(segment, own.rank, number);
    const auto theirs = read_record(segment, peer, number);
    if (!mine || !theirs || mine->fingerprint == theirs->fingerprint) continue;
    return disagreement({own.rank, world_of(segment, own.rank), *mine},
                        {peer, world_of(segment, peer), *theirs});
  }
  return std::nullopt;
}

}  // namespace

Cause disagreement(const Caller& self, const Caller& peer) {
  const Caller& low = self.rank < peer.rank ? self : peer;
  const Caller& high = self.rank < peer.rank ? peer : self;
  const std::string calls[] = {describe(low.note), describe(high.note)};
  const std::string hidden = calls[0] == calls[1] ? difference(low.note, high.note) : "";
  if (calls[0] == calls[1] && hidden.empty()) {
    return Cause{Status::mismatch, peer.rank, label(self.note) + ": " + kLongAgo};
  }
  return Cause{Status::mismatch, peer.rank,
               label(self.note) + ": the ranks do not make the same call: " + rank_in_words(low) +
                   " calls " + calls[0] + ", " + rank_in_words(high) + " calls " + calls[1] +
                   hidden};
}

std::optional<Cause> find_mismatch(const Segment& segment, const OwnCall& own) {
  for (int peer = 0; peer < static_cast<int>(segment.shape().ranks); ++peer) {
    if (peer == own.rank) continue;
    if (auto cause = compare(segment, own, peer)) return cause;
  }
  return std::nullopt;
}

std::optional<Cause> find_lost(const Segment& segment, const OwnCall& own) {
  for (int peer = 0; peer < static_cast<int>(segment.shape().ranks); ++peer) {
    if (peer == own.rank) continue;
    const Life life = life_of(segment, peer);
    if (life == Life::here || life == Life::absent) continue;
    // Whoever has finished this call may go.
    if (segment.rank(peer).done.tick.load(std::memory_order_acquire) >= own.end) continue;
    const std::uint64_t begun = calls_begun(segment, peer);
    const std::string when = begun >= own.note.number ? " during this call"
                             : begun == 0             ? " before its first call"
                                                      : " after its call #" + std::to_string(begun);
    return Cause{Status::peer_lost, peer,
                 label(own.note) + ": " + how_it_left(segment, peer, life) + when};
  }
  return std::nullopt;
}

std::optional<Cause> find_dead(const Segment& segment, int rank) {
  for (int peer = 0; peer < static_cast<int>(segment.shape().ranks); ++peer) {
    if (peer == rank) continue;
    if (auto cause = find_dead_peer(segment, peer)) return cause;
  }
  return std::nullopt;
}

std::optional<Cause> find_dead_peer(const Segment& segment, int peer) {
  if (life_of(segment, peer) != Life::dead) return std::nullopt;
  return Cause{Status::peer_lost, peer, how_it_left(segment, peer, Life::dead)};
}

std::string how_it_left(const Segment& segment, int peer, Life life) {
  const LifeLine& line = segment.rank(peer).life;
  const int world = world_of(segment, peer);
  return "rank " + std::to_string(peer) + " (pid " +
         std::to_string(line.pid.load(std::memory_order_relaxed)) +
         (world != peer ? ", rank " + std::to_string(world) + " of the world" : "") + ")" +
         (life == Life::dead ? " died" : " closed its communicator");
}

Cause failed_here(int rank, const CallNote& note, bool unmapped) {
  const std::string who = "rank " + std::to_string(rank);
  if (!unmapped) {
    return {Status::aborted, rank,
            who + ": its operation has failed on operands of " + describe(note)};
  }
  return {Status::out_of_memory, rank,
          who + " cannot map the symmetric memory of the others for " + describe(note) +
              ": it has no address space left (ulimit -v); raise that, or use ordinary arrays"};
}

Cause unread_peer(int rank, const CallNote& note) {
  return {Status::aborted, rank,
          "rank " + std::to_string(rank) + " could read the memory of the others when it began " +
              describe(note) + ", and then could not"};
}

std::string ahead(const Segment& segment, int rank, int peer) {
  const std::uint64_t begun = calls_begun(segment, peer);
  if (begun <= calls_begun(segment, rank)) return "";
  const auto note = read_record(segment, peer, begun);
  return note ? ", but called " + label(*note) + ", which rank " + std::to_string(rank) + " has not"
              : "";
}

std::string whereabouts(const Segment& segment, const OwnCall& own, int peer) {
  const std::uint64_t begun = calls_begun(segment, peer);
  const std::string who = "rank " + std::to_string(peer);
  if (begun >= own.note.number) return who + " is in the call but silent";
  const WaitNote waits = waits_of(segment, peer);
  if (waits.what != Waits::nothing) return who + " is alive but blocked in " + in_words(waits);
  if (begun == 0) return who + " is alive but has made no call yet";
  return who + " is alive but silent since its call #" + std::to_string(begun);
}

std::string absent_beside(const Segment& segment, const OwnCall& own, int named) {
  std::vector<int> absent;
  for (int peer = 0; peer < static_cast<int>(segment.shape().ranks); ++peer) {
    if (peer == own.rank || peer == named) continue;
    if (calls_begun(segment, peer) < own.note.number) absent.push_back(peer);
  }
  return absent_in_words(absent, calls_begun(segment, named) >= own.note.number);
}

std::string absent_in_words(const std::vector<int>& absent, bool one_is_here) {
  if (absent.empty()) return "";
  return "; " + ranks_in_words(absent) + (absent.size() == 1 ? " has" : " have") +
         " not come to this call" + (one_is_here ? "" : " either");
}

}  // namespace coll

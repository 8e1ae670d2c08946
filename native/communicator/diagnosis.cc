// SPDX-License-Identifier: Apache-2.0
#include "communicator/diagnosis.h"

#include <algorithm>

#include "bootstrap/words.h"
#include "communicator/call.h"
#include "communicator/pair_diagnosis.h"

namespace coll {
namespace {

// The oldest remembered call in which the two ranks differ.
std::optional<Cause> compare(const Segment& segment, const OwnCall& own, int peer) {
  const std::uint64_t last = std::min(own.note.number, calls_begun(segment, peer));
  for (std::uint64_t back = kRecords; back-- > 0;) {
    if (back >= last) continue;
    const std::uint64_t number = last - back;
    const auto mine = read_record(segment, own.rank, number);
    const auto theirs = read_record(segment, peer, number);
    if (!mine || !theirs || mine->fingerprint == theirs->fingerprint) continue;
    return disagreement(own.rank, *mine, peer, *theirs);
  }
  return std::nullopt;
}

}  // namespace

Cause disagreement(int rank, const CallNote& mine, int peer, const CallNote& theirs) {
  const int low = std::min(rank, peer), high = std::max(rank, peer);
  const CallNote& first = low == rank ? mine : theirs;
  const CallNote& second = low == rank ? theirs : mine;
  const std::string calls[] = {describe(first), describe(second)};
  const std::string hidden = calls[0] == calls[1] ? difference(first, second) : "";
  if (calls[0] == calls[1] && hidden.empty()) {
    return Cause{Status::mismatch, peer, label(mine) + ": " + kLongAgo};
  }
  return Cause{Status::mismatch, peer,
               label(mine) + ": the ranks do not make the same call: rank " + std::to_string(low) +
                   " calls " + calls[0] + ", rank " + std::to_string(high) + " calls " + calls[1] +
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
    if (peer == rank || life_of(segment, peer) != Life::dead) continue;
    return Cause{Status::peer_lost, peer, how_it_left(segment, peer, Life::dead)};
  }
  return std::nullopt;
}

std::string how_it_left(const Segment& segment, int peer, Life life) {
  const LifeLine& line = segment.rank(peer).life;
  const int world = segment.rank(peer).watch.world.load(std::memory_order_relaxed);
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

// SPDX-License-Identifier: Apache-2.0
#include "communicator/pairwise.h"

#include "communicator/deadlock.h"
#include "communicator/pair_diagnosis.h"
#include "transport/liveness.h"

namespace coll {

void Pairwise::note_no_more() noexcept {
  if (noted_) box().note({});
  noted_ = false;
}

void Pairwise::withdraw() noexcept {
  PairCalls::give_up();
  note_no_more();
}

void Pairwise::conclude() {
  note_no_more();
  PairCalls::finish();
}

bool Pairwise::sleep(int microseconds) noexcept {
  box().note(waits());
  noted_ = true;
  return box().sleep(microseconds);
}

std::optional<Cause> Pairwise::fault() const {
  if (box().fault().trouble == Trouble::none) return std::nullopt;
  return cause_of(box().fault(), rank_);
}

std::optional<Cause> Pairwise::find_lost() const {
  for (const WaitNote& note : all_waits()) {
    if (auto cause = coll::find_lost(segment_, rank_, note)) return cause;
  }
  return std::nullopt;
}

std::optional<Cause> Pairwise::find_deadlock() const {
  if (gentle()) return std::nullopt;  // its program may have more to do
  for (const WaitNote& note : all_waits()) {
    if (auto cause = coll::find_deadlock(segment_, rank_, note)) return cause;
  }
  return std::nullopt;
}

void Pairwise::answer(std::uint64_t call) noexcept {
  for (int peer = 0; peer < static_cast<int>(segment_.shape().ranks); ++peer) {
    const WaitNote theirs = waits_of(segment_, peer);
    const bool waits = theirs.what != Waits::nothing;
    if (waits && (theirs.peer == rank_ || theirs.peer == kAny)) box().answer(peer, call);
  }
}

std::optional<Cause> Pairwise::unreachable(const PairCall& call) const {
  if (!call.sends()) return std::nullopt;
  const LifeLine& line = segment_.rank(call.to).life;
  const auto presence = static_cast<Presence>(line.presence.load(std::memory_order_relaxed));
  if (presence != Presence::closed) return std::nullopt;
  return coll::find_lost(segment_, rank_, {Waits::send, call.to, call.tag});
}

Cause Pairwise::timed_out(const std::string& limit) const {
  const WaitNote note = waits();
  return {Status::timeout, note.peer,
          in_words(note) + ": rank " + std::to_string(rank_) + " gave up after " + limit + ": " +
              whereabouts(segment_, rank_, note, stray()) +
              (outlived() ? "; the request goes on" : "")};
}

}  // namespace coll

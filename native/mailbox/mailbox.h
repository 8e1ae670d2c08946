// SPDX-License-Identifier: Apache-2.0
// Messages of one rank: what it sends and what it receives, moved on together. Nothing here blocks
// but sleep(), so a send never waits for its own rank to receive.
#pragma once

#include <optional>

#include "mailbox/bell.h"
#include "mailbox/inbox.h"
#include "mailbox/outbox.h"
#include "mailbox/waits.h"

namespace coll {

class Mailbox {
 public:
  Mailbox(const Segment& segment, int rank)
      : segment_(segment),
        rank_(rank),
        inbox_(segment, rank),
        outbox_(segment, rank),
        sleeper_(segment, rank) {}

  // Posts a message; its bytes are read until the request is done. Throws Error where its way to
  // the receiver cannot be backed by memory; then nothing was posted.
  void send(Request& request) {
    outbox_.reserve(request.to);
    outbox_.post(request);
  }
  void receive(Request& request) noexcept { inbox_.post(request); }

  // Moves what can be moved now. Returns whether that was anything.
  bool progress() noexcept {
    inbox_.make_way_for_own(outbox_.busy(rank_));
    const bool sent = outbox_.progress();
    return inbox_.progress() || sent;
  }
  // Sleeps until there may be something to move, a signal comes, or so many microseconds have
  // passed. Returns whether a signal came.
  bool sleep(int microseconds) noexcept {
    return sleeper_.sleep(microseconds, [this] { return !progress(); });
  }

  // Nothing was posted that is not done.
  bool idle() const noexcept { return outbox_.idle() && inbox_.idle(); }
  const Fault& fault() const noexcept { return inbox_.fault(); }

  // Between the two, messages that fit are brought up for find().
  void look_for(const Pattern& pattern) noexcept { inbox_.look_for(pattern); }
  void look_no_more() noexcept { inbox_.look_no_more(); }
  // The first message that fits and that no receive has got.
  std::optional<Found> find(const Pattern& pattern) const noexcept { return inbox_.find(pattern); }

  // Tells a rank what this one, in a call, has on its way to it and would take from it. Who reads
  // that sees all that was sent and taken before.
  void answer(int peer, std::uint64_t call) noexcept {
    const Answer answer{call, outbox_.busy(peer), inbox_.takes_from(peer)};
    segment_.mail_cursor(rank_, peer).answer.store(pack(answer), std::memory_order_release);
  }
  // Tells the other ranks what this one waits for.
  void note(const WaitNote& note) noexcept {
    segment_.mail(rank_).waits.store(pack(note), std::memory_order_relaxed);
  }

 private:
  Segment segment_;
  int rank_;
  Inbox inbox_;
  Outbox outbox_;
  Sleeper sleeper_;
};

// What a rank has answered another one.
inline Answer answer_of(const Segment& segment, int from, int to) noexcept {
  return unpack_answer(segment.mail_cursor(from, to).answer.load(std::memory_order_acquire));
}

// What another rank waits for.
inline WaitNote waits_of(const Segment& segment, int rank) noexcept {
  return unpack(segment.mail(rank).waits.load(std::memory_order_relaxed));
}

}  // namespace coll

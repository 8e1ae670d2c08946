// SPDX-License-Identifier: Apache-2.0
// What this rank receives. Messages of one sender meet receives in the order of their sending,
// receives meet messages in the order of their posting, as in MPI.
//
// A ring holds its messages in order. One that no receive asks for stays there, and holds up its
// sender, until a receive asks for what may lie behind it: then it is set aside, in memory of this
// rank. So receives in any order find their messages, and nothing but memory bounds what is aside.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "mailbox/ring.h"

namespace coll {

struct Fault {
  Trouble trouble = Trouble::none;
  int source = kAny;
  Envelope envelope;
  const Request* request = nullptr;
};

class Inbox {
 public:
  Inbox(const Segment& segment, int rank);

  void post(Request& request) noexcept;
  // Reads what has come and is asked for. Returns whether that was anything.
  bool progress() noexcept;

  // From now on messages are looked for that fit, but not received. One pattern at a time.
  void look_for(const Pattern& pattern) noexcept;
  void look_no_more() noexcept;
  // The first message that fits and that no receive has met.
  std::optional<Found> find(const Pattern& pattern) const noexcept;
  // Messages from this rank to itself are set aside, so that to send them never blocks.
  void make_way_for_own(bool own) noexcept;

  // Whether a receive may still get a message of this rank, or the rest of one.
  bool takes_from(int from) const noexcept { return posted_any_ > 0 || lane(from).wanted > 0; }
  // No receive waits for a message, or for the rest of one.
  bool idle() const noexcept { return waiting_ == 0; }
  const Fault& fault() const noexcept { return fault_; }

 private:
  // A message that came before it was asked for.
  struct Aside {
    Envelope envelope;
    std::uint64_t order;  // of arrival, over all senders
    std::unique_ptr<std::byte[]> bytes;
  };
  using Asides = std::list<Aside>;

  // The way from one sender.
  struct Lane {
    explicit Lane(RingDrain end) : ring(end) {}

    RingDrain ring;
    std::uint64_t messages = 0;  // begun so far
    // The message that is being read: one that a receive has met, one that is being set aside, or
    // one that nothing was done about yet.
    bool open = false;
    Envelope envelope;
    std::uint64_t order = 0;
    std::size_t moved = 0;
    Request* into = nullptr;
    Aside* aside = nullptr;  // the last of `asides`
    Asides asides;
    int wanted = 0;  // receives for this sender alone, or in the middle of a message from it
    int posted = 0;  // those of the first kind that have met no message

    bool announced() const noexcept { return open && into == nullptr && aside == nullptr; }
  };

  Lane& lane(int from) noexcept { return lanes_[static_cast<std::size_t>(from)]; }
  const Lane& lane(int from) const noexcept { return lanes_[static_cast<std::size_t>(from)]; }
  int ranks() const noexcept { return static_cast<int>(lanes_.size()); }

  bool progress(int from) noexcept;
  bool open_next(Lane& lane, int from) noexcept;
  bool stays_in_ring(const Lane& lane, int from) const noexcept;
  bool set_aside(Lane& lane) noexcept;
  bool read(Lane& lane, int from) noexcept;
  void close(Lane& lane, int from) noexcept;
  bool meet(Request& request, int from, const Envelope& envelope) noexcept;
  void end(Request& request) noexcept;
  void take_from(Lane& lane, int from, Request& request) noexcept;
  void want(int from) noexcept;
  void want_no_more(int from) noexcept;
  void raise(const Fault& fault) noexcept;

  Segment segment_;
  int rank_;
  std::vector<Lane> lanes_;
  std::vector<int> wanted_;  // lanes that somebody wants
  RequestQueue posted_;
  int posted_any_ = 0;  // of them for any sender
  int waiting_ = 0;     // receives that are not done
  std::optional<Pattern> sought_;
  bool own_ = false;
  std::uint64_t order_ = 0;
  Fault fault_;
};

}  // namespace coll

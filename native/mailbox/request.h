// SPDX-License-Identifier: Apache-2.0
// A message between two ranks, as its sender describes it and as its receiver asks for it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/parcel.h"

namespace coll {

inline constexpr int kAny = -1;  // any source, any tag
// The tag of what collectives by messages send (communicator/message_steps.h): no receive of the
// program gets it.
inline constexpr int kStepsTag = -2;

constexpr bool may_be_tag(int tag) noexcept { return tag >= 0 || tag == kStepsTag; }

// What ends the group: found while receiving, told by whoever waits.
enum class Trouble {
  none,
  other_dtype,  // a receive has met a message of another dtype
  no_envelope,  // the ring holds something else than messages
  no_memory     // to set a message aside
};

// What travels before the bytes of a message.
struct Envelope {
  std::int32_t tag = 0;
  std::int32_t dtype = 0;
  std::uint64_t bytes = 0;
  std::uint64_t number = 0;  // 1: the first message of its sender to its receiver
};

// Which messages a receive or a probe is for.
struct Pattern {
  int source = kAny;
  int tag = kAny;

  bool admits(int from) const noexcept { return source == kAny || source == from; }
  bool matches(int from, int with_tag) const noexcept {
    return admits(from) && (tag == kAny ? with_tag >= 0 : tag == with_tag);
  }
};

// A message that a probe has found.
struct Found {
  int source = kAny;
  Envelope envelope;
};

// One send or receive, from its posting to its end. It must stay where it is until it is done.
struct Request {
  // Of a send.
  const std::byte* from = nullptr;
  int to = 0;
  // Of a receive.
  std::byte* into = nullptr;
  Parcel* parcel = nullptr;  // in its place: memory that is made when the message comes
  std::size_t room = 0;
  Pattern pattern;
  // Of a send what it sends; of a receive what it has got, as soon as the two have met.
  Envelope envelope;
  int source = kAny;
  bool met = false;  // a receive: its message has begun to arrive

  std::size_t moved = 0;  // bytes of a send that are on their way
  bool done = false;
  Request* next = nullptr;  // in the queue that it waits in

  // A receive gets this message. Where there is trouble, only its source is noted.
  Trouble meet(int with, const Envelope& its) noexcept {
    source = with;
    if (envelope.dtype != its.dtype) return Trouble::other_dtype;
    if (parcel != nullptr && its.bytes <= room) {
      if (!parcel->make_room(static_cast<std::size_t>(its.bytes))) return Trouble::no_memory;
      into = parcel->data();
    }
    envelope = its;
    met = true;
    return Trouble::none;
  }

  // The message does not fit: nothing was written, and the message is lost.
  bool too_long() const noexcept { return met && envelope.bytes > room; }
};

// Requests in the order of their posting. Allocates nothing.
class RequestQueue {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  Request* first() const noexcept { return first_; }

  void push(Request& request) noexcept {
    request.next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = &request;
    last_ = &request;
  }
  void pop() noexcept { first_ = first_->next; }
  // Takes out and returns the first one that `chosen` says; nullptr where there is none.
  template <class Chosen>
  Request* take(Chosen chosen) noexcept {
    Request* before = nullptr;
    for (Request* request = first_; request != nullptr; request = request->next) {
      if (chosen(*request)) {
        (before == nullptr ? first_ : before->next) = request->next;
        if (last_ == request) last_ = before;
        return request;
      }
      before = request;
    }
    return nullptr;
  }

 private:
  Request* first_ = nullptr;
  Request* last_ = nullptr;  // means nothing where there is no first
};

}  // namespace coll

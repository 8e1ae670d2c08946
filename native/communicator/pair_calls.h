// SPDX-License-Identifier: Apache-2.0
// The message calls of one rank over a box of messages (a Mailbox or what does the same): those
// that block, one at a time, and those that go on beside.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "communicator/pair_call.h"
#include "communicator/pair_diagnosis.h"
#include "engine/pause.h"
#include "mailbox/waits.h"

namespace coll {

enum class PairTurn { done, moved, blocked, fault };

template <class Box>
class PairCalls {
 public:
  template <class... Arguments>
  explicit PairCalls(Arguments&&... arguments) : box_(std::forward<Arguments>(arguments)...) {}

  // Begins a call that blocks: then advance() until it is done, and finish() it. Throws Error; then
  // nothing was begun.
  void begin(const PairCall& call);
  // Goes on until done or blocked, spinning `spins` times before it gives up.
  PairTurn advance(int spins) noexcept;
  // Hands out what was received. Throws Error(invalid_argument) where that did not fit.
  void finish();
  // What it waits for is there, or gone out.
  bool done() const noexcept;
  bool active() const noexcept { return active_; }
  // The call has ended without an end of its own: time is up, or the group has failed.
  void give_up() noexcept;
  // The collective by messages that the call is a step of; "": none.
  std::string_view step_of() const noexcept { return step_of_; }
  // Whether a time-out of the call leaves the group as it is.
  bool gentle() const noexcept { return gentle_; }

  // Begins a send or receive and returns. Throws Error; then nothing was begun.
  coll_request post(const PairCall& call);
  // Sets `done` where the request is done; then it is gone, and `received` written. Throws as
  // finish() does.
  void test(coll_request request, std::int32_t& done, coll_message* received);
  // For whom a request waits. Throws Error where there is none of that name.
  WaitNote waits(coll_request request) const;
  // For whom the half of the call waits that is not done.
  WaitNote waits() const noexcept;
  // For whom its halves wait that are not done, the send first.
  std::vector<WaitNote> all_waits() const;
  // Whether a message is there that fits.
  bool probe(const Pattern& pattern, coll_message* found) noexcept;
  // The first message of the rank that the call waits for in a receive, whatever its tag.
  std::optional<Found> stray() const noexcept;
  // The call is a wait of a limited time, which the request outlives.
  bool outlived() const noexcept { return kind_ == PairKind::wait && gentle_; }

  // Something was posted that is not done, so calls of every kind have to make progress().
  bool pending() const noexcept { return !box_.idle(); }
  bool progress() noexcept { return box_.progress(); }

  Box& box() noexcept { return box_; }
  const Box& box() const noexcept { return box_; }

 private:
  struct Slot {
    Request request;
    PairKind kind = PairKind::send;
    std::uint32_t uses = 0;
    bool taken = false;
  };

  // A pass moves a ring full at most: after so many the caller may look at its clocks.
  static constexpr int kPassesPerTurn = 64;

  static std::size_t slot_index(coll_request request) noexcept {
    return static_cast<std::size_t>(request & 0xFFFFFFFF) - 1;
  }
  static void write_message(const Request& request, coll_message* received) noexcept;
  static WaitNote note_of(PairKind kind, const Request& request) noexcept;
  void post_send(Request& request, const PairCall& call);
  void post_receive(Request& request, const PairCall& call) noexcept;
  Slot& slot_of(coll_request request) const;
  void free_slot(coll_request request) noexcept;

  Box box_;
  // The call that blocks.
  bool active_ = false, gentle_ = false;
  std::string_view step_of_;
  PairKind kind_ = PairKind::send;
  Request own_send_, own_receive_;
  const Request* send_ = nullptr;
  const Request* receive_ = nullptr;
  Pattern sought_;
  coll_request waited_ = 0;
  coll_message* received_ = nullptr;
  // Those that go on beside. A request is named by its slot and by how often that was used.
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<std::uint32_t> free_;
};

template <class Box>
void PairCalls<Box>::write_message(const Request& request, coll_message* received) noexcept {
  if (received == nullptr) return;
  *received = {request.source, request.envelope.tag, request.envelope.dtype,
               elements_of(request.envelope)};
}

template <class Box>
WaitNote PairCalls<Box>::note_of(PairKind kind, const Request& request) noexcept {
  if (kind == PairKind::send) return {Waits::send, request.to, request.envelope.tag};
  const int source = request.met ? request.source : request.pattern.source;
  return {Waits::recv, source, request.pattern.tag};
}

template <class Box>
void PairCalls<Box>::post_send(Request& request, const PairCall& call) {
  request.from = static_cast<const std::byte*>(call.data);
  request.to = call.to;
  request.envelope = {.tag = call.tag,
                      .dtype = static_cast<std::int32_t>(call.dtype),
                      .bytes = call.count * size_of(call.dtype)};
  box_.send(request);
}

template <class Box>
void PairCalls<Box>::post_receive(Request& request, const PairCall& call) noexcept {
  request.into = static_cast<std::byte*>(call.into);
  request.parcel = call.parcel;
  request.room = call.room * size_of(call.into_dtype);
  request.pattern = call.from;
  request.envelope = {.dtype = static_cast<std::int32_t>(call.into_dtype)};
  box_.receive(request);
}

// ---- calls that block ------------------------------------------------------------------------

template <class Box>
void PairCalls<Box>::begin(const PairCall& call) {
  kind_ = call.kind;
  send_ = receive_ = nullptr;
  if (call.kind == PairKind::wait) {
    const Slot& slot = slot_of(call.request);
    (slot.kind == PairKind::send ? send_ : receive_) = &slot.request;
    waited_ = call.request;
  }
  if (call.sends()) {
    post_send(own_send_, call);
    send_ = &own_send_;
  }
  if (call.receives()) {
    post_receive(own_receive_, call);
    receive_ = &own_receive_;
  }
  if (call.kind == PairKind::probe) {
    sought_ = call.from;
    box_.look_for(sought_);
  }
  received_ = call.received;
  gentle_ = call.gentle();
  step_of_ = call.step_of;
  active_ = true;
}

template <class Box>
bool PairCalls<Box>::done() const noexcept {
  if (kind_ == PairKind::probe) return box_.find(sought_).has_value();
  return (send_ == nullptr || send_->done) && (receive_ == nullptr || receive_->done);
}

template <class Box>
PairTurn PairCalls<Box>::advance(int spins) noexcept {
  for (int passes = 0;;) {
    if (box_.fault().trouble != Trouble::none) return PairTurn::fault;
    if (done()) return PairTurn::done;
    if (box_.progress()) {
      if (++passes == kPassesPerTurn) return PairTurn::moved;
      continue;
    }
    if (spins-- <= 0) return passes > 0 ? PairTurn::moved : PairTurn::blocked;
    pause();
  }
}

template <class Box>
void PairCalls<Box>::give_up() noexcept {
  if (!active_) return;
  active_ = false;
  if (kind_ == PairKind::probe) box_.look_no_more();
}

template <class Box>
void PairCalls<Box>::finish() {
  give_up();
  if (kind_ == PairKind::wait) {
    std::int32_t done = 0;
    test(waited_, done, received_);
    return;
  }
  if (kind_ == PairKind::probe) {
    probe(sought_, received_);
    return;
  }
  if (receive_ == nullptr) return;
  write_message(*receive_, received_);
  if (receive_->too_long()) throw Error(Status::invalid_argument, too_long(*receive_));
}

// ---- calls that go on beside -----------------------------------------------------------------

template <class Box>
coll_request PairCalls<Box>::post(const PairCall& call) {
  if (free_.empty()) {
    slots_.push_back(std::make_unique<Slot>());
    free_.reserve(slots_.size());
    free_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
  }
  const std::uint32_t index = free_.back();
  Slot& slot = *slots_[index];
  slot.kind = call.kind;
  if (call.sends()) {
    post_send(slot.request, call);
  } else {
    post_receive(slot.request, call);
  }
  free_.pop_back();
  slot.taken = true;
  box_.progress();
  return static_cast<coll_request>(slot.uses) << 32 | (index + 1);
}

template <class Box>
PairCalls<Box>::Slot& PairCalls<Box>::slot_of(coll_request request) const {
  const std::size_t index = slot_index(request);
  if (index < slots_.size()) {
    Slot& slot = *slots_[index];
    if (slot.taken && slot.uses == request >> 32) return slot;
  }
  throw Error(Status::invalid_argument,
              "there is no such request: it was waited for, or tested and done, before");
}

template <class Box>
void PairCalls<Box>::free_slot(coll_request request) noexcept {
  const std::size_t index = slot_index(request);
  ++slots_[index]->uses;
  slots_[index]->taken = false;
  free_.push_back(static_cast<std::uint32_t>(index));
}

template <class Box>
void PairCalls<Box>::test(coll_request request, std::int32_t& done, coll_message* received) {
  const Slot& slot = slot_of(request);
  if (!slot.request.done) box_.progress();
  done = slot.request.done ? 1 : 0;
  if (done == 0) return;
  free_slot(request);
  if (slot.kind == PairKind::send) return;
  write_message(slot.request, received);
  if (slot.request.too_long()) throw Error(Status::invalid_argument, too_long(slot.request));
}

template <class Box>
bool PairCalls<Box>::probe(const Pattern& pattern, coll_message* found) noexcept {
  auto message = box_.find(pattern);
  if (!message) {
    box_.look_for(pattern);
    box_.progress();
    box_.look_no_more();
    message = box_.find(pattern);
  }
  if (!message) return false;
  if (found != nullptr) {
    *found = {message->source, message->envelope.tag, message->envelope.dtype,
              elements_of(message->envelope)};
  }
  return true;
}

// ---- calls that wait -------------------------------------------------------------------------

template <class Box>
std::vector<WaitNote> PairCalls<Box>::all_waits() const {
  if (kind_ == PairKind::probe) return {{Waits::probe, sought_.source, sought_.tag}};
  std::vector<WaitNote> notes;
  if (send_ != nullptr && !send_->done) notes.push_back(note_of(PairKind::send, *send_));
  if (receive_ != nullptr && !receive_->done) notes.push_back(note_of(PairKind::recv, *receive_));
  return notes;
}

template <class Box>
WaitNote PairCalls<Box>::waits() const noexcept {
  if (kind_ == PairKind::probe) return {Waits::probe, sought_.source, sought_.tag};
  // Of two halves the send: until it is over, the other rank may have nothing to answer.
  if (send_ != nullptr && !send_->done) return note_of(PairKind::send, *send_);
  if (receive_ != nullptr) return note_of(PairKind::recv, *receive_);
  return {};
}

template <class Box>
WaitNote PairCalls<Box>::waits(coll_request request) const {
  const Slot& slot = slot_of(request);
  return note_of(slot.kind, slot.request);
}

template <class Box>
std::optional<Found> PairCalls<Box>::stray() const noexcept {
  const WaitNote note = waits();
  if (note.what != Waits::recv || note.peer == kAny) return std::nullopt;
  return box_.find({note.peer, kAny});
}

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
#include "communicator/pairwise.h"

#include <string>

#include "communicator/pair_diagnosis.h"
#include "engine/pause.h"

namespace coll {
namespace {

// A pass moves a ring full at most: after so many the caller may look at its clocks.
constexpr int kPassesPerTurn = 64;

void write_message(const Request& request, coll_message* received) noexcept {
  if (received == nullptr) return;
  *received = {request.source, request.envelope.tag, request.envelope.dtype,
               elements_of(request.envelope)};
}

std::size_t slot_index(coll_request request) noexcept {
  return static_cast<std::size_t>(request & 0xFFFFFFFF) - 1;
}

WaitNote note_of(PairKind kind, const Request& request) noexcept {
  if (kind == PairKind::send) return {Waits::send, request.to, request.envelope.tag};
  const int source = request.met ? request.source : request.pattern.source;
  return {Waits::recv, source, request.pattern.tag};
}

}  // namespace

Pairwise::Pairwise(const Segment& segment, int rank)
    : segment_(segment), rank_(rank), mailbox_(segment, rank) {}

void Pairwise::post_send(Request& request, const PairCall& call) {
  request.from = static_cast<const std::byte*>(call.data);
  request.to = call.to;
  request.envelope = {.tag = call.tag,
                      .dtype = static_cast<std::int32_t>(call.dtype),
                      .bytes = call.count * size_of(call.dtype)};
  mailbox_.send(request);
}

void Pairwise::post_receive(Request& request, const PairCall& call) noexcept {
  request.into = static_cast<std::byte*>(call.into);
  request.room = call.room * size_of(call.into_dtype);
  request.pattern = call.from;
  request.envelope = {.dtype = static_cast<std::int32_t>(call.into_dtype)};
  mailbox_.receive(request);
}

// ---- calls that block ------------------------------------------------------------------------

void Pairwise::begin(const PairCall& call) {
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
    mailbox_.look_for(sought_);
  }
  received_ = call.received;
  gentle_ = call.gentle();
  active_ = true;
}

bool Pairwise::done() const noexcept {
  if (kind_ == PairKind::probe) return mailbox_.find(sought_).has_value();
  return (send_ == nullptr || send_->done) && (receive_ == nullptr || receive_->done);
}

Pairwise::Turn Pairwise::advance(int spins) noexcept {
  for (int passes = 0;;) {
    if (mailbox_.fault().trouble != Trouble::none) return Turn::fault;
    if (done()) return Turn::done;
    if (mailbox_.progress()) {
      if (++passes == kPassesPerTurn) return Turn::moved;
      continue;
    }
    if (spins-- <= 0) return passes > 0 ? Turn::moved : Turn::blocked;
    pause();
  }
}

void Pairwise::give_up() noexcept {
  if (!active_) return;
  active_ = false;
  if (kind_ == PairKind::probe) mailbox_.look_no_more();
  if (noted_) mailbox_.note({});
  noted_ = false;
}

void Pairwise::finish() {
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

coll_request Pairwise::post(const PairCall& call) {
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
  mailbox_.progress();
  return static_cast<coll_request>(slot.uses) << 32 | (index + 1);
}

Pairwise::Slot& Pairwise::slot_of(coll_request request) const {
  const std::size_t index = slot_index(request);
  if (index < slots_.size()) {
    Slot& slot = *slots_[index];
    if (slot.taken && slot.uses == request >> 32) return slot;
  }
  throw Error(Status::invalid_argument,
              "there is no such request: it was waited for, or tested and done, before");
}

void Pairwise::free_slot(coll_request request) noexcept {
  const std::size_t index = slot_index(request);
  ++slots_[index]->uses;
  slots_[index]->taken = false;
  free_.push_back(static_cast<std::uint32_t>(index));
}

void Pairwise::test(coll_request request, std::int32_t& done, coll_message* received) {
  const Slot& slot = slot_of(request);
  if (!slot.request.done) mailbox_.progress();
  done = slot.request.done ? 1 : 0;
  if (done == 0) return;
  free_slot(request);
  if (slot.kind == PairKind::send) return;
  write_message(slot.request, received);
  if (slot.request.too_long()) throw Error(Status::invalid_argument, too_long(slot.request));
}

bool Pairwise::probe(const Pattern& pattern, coll_message* found) noexcept {
  auto message = mailbox_.find(pattern);
  if (!message) {
    mailbox_.look_for(pattern);
    mailbox_.progress();
    mailbox_.look_no_more();
    message = mailbox_.find(pattern);
  }
  if (!message) return false;
  if (found != nullptr) {
    *found = {message->source, message->envelope.tag, message->envelope.dtype,
              elements_of(message->envelope)};
  }
  return true;
}

// ---- calls that wait -------------------------------------------------------------------------

WaitNote Pairwise::waits() const noexcept {
  if (kind_ == PairKind::probe) return {Waits::probe, sought_.source, sought_.tag};
  // Of two halves the send: until it is over, the other rank may have nothing to answer.
  if (send_ != nullptr && !send_->done) return note_of(PairKind::send, *send_);
  if (receive_ != nullptr) return note_of(PairKind::recv, *receive_);
  return {};
}

WaitNote Pairwise::waits(coll_request request) const {
  const Slot& slot = slot_of(request);
  return note_of(slot.kind, slot.request);
}

bool Pairwise::sleep(int microseconds) noexcept {
  mailbox_.note(waits());
  noted_ = true;
  return mailbox_.sleep(microseconds);
}

std::optional<Cause> Pairwise::fault() const {
  if (mailbox_.fault().trouble == Trouble::none) return std::nullopt;
  return cause_of(mailbox_.fault(), rank_);
}

std::optional<Cause> Pairwise::find_lost() const {
  if (kind_ != PairKind::probe) {
    for (const auto& [kind, request] :
         {std::pair{PairKind::send, send_}, {PairKind::recv, receive_}}) {
      if (request == nullptr || request->done) continue;
      if (auto cause = coll::find_lost(segment_, rank_, note_of(kind, *request))) return cause;
    }
    return std::nullopt;
  }
  return coll::find_lost(segment_, rank_, waits());
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
  std::optional<Found> stray;
  if (note.what == Waits::recv && note.peer != kAny) stray = mailbox_.find({note.peer, kAny});
  return {Status::timeout, note.peer,
          in_words(note) + ": rank " + std::to_string(rank_) + " gave up after " + limit + ": " +
              whereabouts(segment_, rank_, note, stray) +
              (kind_ == PairKind::wait && gentle_ ? "; the request goes on" : "")};
}

}  // namespace coll

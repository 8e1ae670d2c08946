// SPDX-License-Identifier: Apache-2.0
#include "mailbox/inbox.h"

#include <cstring>
#include <new>

#include "mailbox/bell.h"

namespace coll {

Inbox::Inbox(const Segment& segment, int rank) : segment_(segment), rank_(rank) {
  const int ranks = static_cast<int>(segment.shape().ranks);
  lanes_.reserve(static_cast<std::size_t>(ranks));
  wanted_.reserve(static_cast<std::size_t>(ranks));
  for (int from = 0; from < ranks; ++from) lanes_.emplace_back(RingDrain(segment, from, rank));
}

void Inbox::want(int from) noexcept {
  if (lane(from).wanted++ == 0) wanted_.push_back(from);
}

void Inbox::want_no_more(int from) noexcept {
  if (--lane(from).wanted == 0) std::erase(wanted_, from);
}

void Inbox::raise(const Fault& fault) noexcept {
  if (fault_.trouble == Trouble::none) fault_ = fault;
}

// ---- receives ------------------------------------------------------------------------------

void Inbox::post(Request& request) noexcept {
  request.met = request.done = false;
  request.source = kAny;
  ++waiting_;
  // What has come is looked at in the order of its coming.
  if (const auto found = find(request.pattern)) {
    take_from(lane(found->source), found->source, request);
    return;
  }
  posted_.push(request);
  const int source = request.pattern.source;
  if (source == kAny) {
    ++posted_any_;
  } else {
    ++lane(source).posted;
    want(source);
  }
}

// The receive gets this message, unless it waits for another dtype or there is no memory.
bool Inbox::meet(Request& request, int from, const Envelope& envelope) noexcept {
  const Trouble trouble = request.meet(from, envelope);
  if (trouble != Trouble::none) raise({trouble, from, envelope, &request});
  return trouble == Trouble::none;
}

void Inbox::end(Request& request) noexcept {
  request.done = true;
  --waiting_;
}

// Gives the receive the first message of this sender that it is for, and that is there.
void Inbox::take_from(Lane& lane, int from, Request& request) noexcept {
  for (auto aside = lane.asides.begin(); aside != lane.asides.end(); ++aside) {
    if (!request.pattern.matches(from, aside->envelope.tag)) continue;
    if (!meet(request, from, aside->envelope)) return;
    const bool partly = lane.aside == &*aside;
    const std::size_t there = partly ? lane.moved : static_cast<std::size_t>(aside->envelope.bytes);
    if (!request.too_long() && there > 0) std::memcpy(request.into, aside->bytes.get(), there);
    lane.asides.erase(aside);
    if (!partly) {
      end(request);
      return;
    }
    lane.aside = nullptr;
    break;
  }
  // What is still to come goes to its place at once.
  if (!request.met && !meet(request, from, lane.envelope)) return;
  lane.into = &request;
  want(from);
}

// ---- probes --------------------------------------------------------------------------------

void Inbox::look_for(const Pattern& pattern) noexcept {
  sought_ = pattern;
  if (pattern.source != kAny) want(pattern.source);
}

void Inbox::look_no_more() noexcept {
  if (sought_ && sought_->source != kAny) want_no_more(sought_->source);
  sought_.reset();
}

std::optional<Found> Inbox::find(const Pattern& pattern) const noexcept {
  std::optional<Found> first;
  std::uint64_t order = ~std::uint64_t{0};
  const int begin = pattern.source == kAny ? 0 : pattern.source;
  const int end = pattern.source == kAny ? ranks() : pattern.source + 1;
  for (int from = begin; from < end; ++from) {
    const Lane& l = lane(from);
    const auto offer = [&](const Envelope& envelope, std::uint64_t its_order) {
      if (its_order >= order || !pattern.matches(from, envelope.tag)) return;
      order = its_order;
      first = Found{from, envelope};
    };
    for (const Aside& aside : l.asides) offer(aside.envelope, aside.order);
    if (l.announced()) offer(l.envelope, l.order);
  }
  return first;
}

void Inbox::make_way_for_own(bool own) noexcept {
  if (own == own_) return;
  own_ = own;
  own ? want(rank_) : want_no_more(rank_);
}

// ---- what comes ----------------------------------------------------------------------------

bool Inbox::progress() noexcept {
  bool moved = false;
  if (posted_any_ > 0 || (sought_ && sought_->source == kAny)) {
    for (int from = 0; from < ranks(); ++from) moved = progress(from) || moved;
    return moved;
  }
  // Backwards, because a lane may leave the list when it has been served.
  for (std::size_t i = wanted_.size(); i-- > 0;) {
    if (i < wanted_.size()) moved = progress(wanted_[i]) || moved;
  }
  return moved;
}

// One ring full at most, so that the other senders get their turn.
bool Inbox::progress(int from) noexcept {
  Lane& l = lane(from);
  bool moved = false;
  std::size_t budget = l.ring.size();
  while (budget > 0 && fault_.trouble == Trouble::none) {
    if (!l.open && !open_next(l, from)) break;
    if (l.announced()) {
      if (stays_in_ring(l, from)) break;
      if (!set_aside(l)) {
        raise({Trouble::no_memory, from, l.envelope});
        break;
      }
    }
    const std::size_t before = l.moved;
    if (!read(l, from)) break;
    moved = true;
    budget -= std::min(budget, l.moved - before + kLine);
    if (l.moved == l.envelope.bytes) close(l, from);
  }
  return moved;
}

// Whether a message begins; the receive that was posted for it meets it.
bool Inbox::open_next(Lane& lane, int from) noexcept {
  if (!lane.ring.begin(lane.envelope)) return false;
  if (lane.envelope.number != ++lane.messages || !may_be_tag(lane.envelope.tag)) {
    raise({Trouble::no_envelope, from, lane.envelope});
    return false;
  }
  lane.open = true;
  lane.order = ++order_;
  lane.moved = 0;
  lane.aside = nullptr;
  lane.into =
      posted_.take([&](const Request& r) { return r.pattern.matches(from, lane.envelope.tag); });
  if (lane.into == nullptr) return true;
  if (lane.into->pattern.source == kAny) {
    --posted_any_;
    want(from);
  } else {
    --lane.posted;
  }
  return meet(*lane.into, from, lane.envelope);
}

// Nobody is held up by the message at the head of the ring.
bool Inbox::stays_in_ring(const Lane& lane, int from) const noexcept {
  if (lane.posted > 0 || posted_any_ > 0 || (own_ && from == rank_)) return false;
  return !sought_ || !sought_->admits(from) || sought_->matches(from, lane.envelope.tag);
}

bool Inbox::set_aside(Lane& lane) noexcept {
  try {
    const auto bytes = static_cast<std::size_t>(lane.envelope.bytes);
    auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
    lane.asides.push_back({lane.envelope, lane.order, std::move(memory)});
  } catch (const std::bad_alloc&) {
    return false;
  }
  lane.aside = &lane.asides.back();
  return true;
}

// One piece of the open message. Returns whether there was any, or none is left to come.
bool Inbox::read(Lane& lane, int from) noexcept {
  const std::size_t left = static_cast<std::size_t>(lane.envelope.bytes) - lane.moved;
  std::byte* to = nullptr;
  if (lane.aside != nullptr) {
    to = lane.aside->bytes.get() + lane.moved;
  } else if (!lane.into->too_long()) {
    to = lane.into->into + lane.moved;
  }
  const std::size_t n = lane.ring.drain(to, std::min(left, lane.ring.piece()));
  lane.moved += n;
  if (n == 0 && left > 0) return false;
  lane.ring.publish();
  wake(segment_.mail(from));
  return true;
}

void Inbox::close(Lane& lane, int from) noexcept {
  lane.open = false;
  lane.aside = nullptr;
  if (lane.into == nullptr) return;
  end(*lane.into);
  lane.into = nullptr;
  want_no_more(from);
}

}  // namespace coll

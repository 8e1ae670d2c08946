// SPDX-License-Identifier: Apache-2.0
#include "mailbox/outbox.h"

#include <cerrno>
#include <string>

#include "base/system_error.h"
#include "mailbox/bell.h"

namespace coll {

Outbox::Outbox(const Segment& segment, int rank) : segment_(segment) {
  const int ranks = static_cast<int>(segment.shape().ranks);
  lanes_.reserve(static_cast<std::size_t>(ranks));
  busy_.reserve(static_cast<std::size_t>(ranks));
  for (int to = 0; to < ranks; ++to) lanes_.emplace_back(RingFiller(segment, rank, to));
}

void Outbox::reserve(int to) {
  Lane& lane = lanes_[static_cast<std::size_t>(to)];
  if (lane.reserved) return;
  if (sys::madvise(lane.ring.memory(), lane.ring.size(), sys::kPopulateWrite) != 0 &&
      errno != EINVAL) {
    // EINVAL: a kernel that cannot promise. EFAULT: SIGBUS, had we written.
    throw system_error("reserving " + std::to_string(lane.ring.size()) +
                           " bytes of shared memory for messages to rank " + std::to_string(to),
                       errno == EFAULT ? ENOMEM : errno);
  }
  lane.reserved = true;
}

void Outbox::post(Request& request) noexcept {
  Lane& lane = lanes_[static_cast<std::size_t>(request.to)];
  if (lane.queue.empty()) busy_.push_back(request.to);
  request.envelope.number = ++lane.messages;
  request.moved = 0;
  request.done = false;
  lane.queue.push(request);
}

bool Outbox::progress() noexcept {
  bool moved = false;
  for (std::size_t i = busy_.size(); i-- > 0;) {
    const int to = busy_[i];
    moved = progress(to) || moved;
    if (busy(to)) continue;
    busy_[i] = busy_.back();
    busy_.pop_back();
  }
  return moved;
}

// One ring full at most, so that the other receivers get their turn.
bool Outbox::progress(int to) noexcept {
  Lane& lane = lanes_[static_cast<std::size_t>(to)];
  bool moved = false;
  std::size_t budget = lane.ring.size();
  while (!lane.queue.empty() && budget > 0) {
    Request& request = *lane.queue.first();
    const std::size_t before = request.moved;
    if (!write(lane, request)) break;
    moved = true;
    wake(segment_.mail(to));
    budget -= std::min(budget, request.moved - before + kLine);
    if (request.moved < request.envelope.bytes) continue;
    lane.queue.pop();
    lane.begun = false;
    request.done = true;
  }
  return moved;
}

// Writes the envelope, and one piece of the message. Returns whether anything was written.
bool Outbox::write(Lane& lane, Request& request) noexcept {
  bool wrote = false;
  if (!lane.begun) {
    if (!lane.ring.begin(request.envelope)) return false;
    lane.begun = wrote = true;
  }
  const std::size_t left = static_cast<std::size_t>(request.envelope.bytes) - request.moved;
  const std::size_t n =
      lane.ring.fill(request.from + request.moved, std::min(left, lane.ring.piece()));
  request.moved += n;
  wrote = wrote || n > 0;
  if (wrote) lane.ring.publish();
  return wrote;
}

}  // namespace coll

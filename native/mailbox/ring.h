// SPDX-License-Identifier: Apache-2.0
// The two ends of the ring of bytes from one rank to another: one sender, one receiver, no lock. A
// message begins at a cache line, so an envelope never wraps around, and the next message never
// shares a line with this one.
#pragma once

#include <algorithm>
#include <cstring>

#include "mailbox/request.h"
#include "transport/segment.h"

namespace coll {

static_assert(sizeof(Envelope) <= kLine);

class RingEnd {
 public:
  // What a message occupies is handed over in such pieces, so that both ends work at once.
  std::size_t piece() const noexcept { return size_ / 4; }
  std::size_t size() const noexcept { return size_; }

 protected:
  RingEnd(const Segment& segment, int from, int to) noexcept
      : cursor_(&segment.mail_cursor(from, to)),
        bytes_(segment.mail_ring(from, to)),
        size_(segment.mail_bytes()) {}

  static std::uint64_t next_line(std::uint64_t position) noexcept {
    return (position + kLine - 1) / kLine * kLine;
  }
  std::size_t offset(std::uint64_t position) const noexcept {
    return static_cast<std::size_t>(position) & (size_ - 1);
  }

  MailCursor* cursor_;
  std::byte* bytes_;
  std::size_t size_;
};

class RingFiller : public RingEnd {
 public:
  RingFiller(const Segment& segment, int from, int to) noexcept : RingEnd(segment, from, to) {}

  std::byte* memory() const noexcept { return bytes_; }

  // Whether there was room to begin a message. Seen by the receiver after publish().
  bool begin(const Envelope& envelope) noexcept {
    const std::uint64_t start = next_line(at_);
    if (start + kLine > emptied_ + size_) {
      look();
      if (start + kLine > emptied_ + size_) return false;
    }
    std::memcpy(bytes_ + offset(start), &envelope, sizeof(envelope));
    at_ = start + sizeof(envelope);
    return true;
  }
  // How many of so many bytes were written.
  std::size_t fill(const std::byte* from, std::size_t most) noexcept {
    if (at_ + most > emptied_ + size_) look();
    const std::size_t room = static_cast<std::size_t>(emptied_ + size_ - at_);
    const std::size_t n = std::min(most, room);
    const std::size_t before_wrap = std::min(n, size_ - offset(at_));
    if (n == 0) return 0;
    std::memcpy(bytes_ + offset(at_), from, before_wrap);
    std::memcpy(bytes_, from + before_wrap, n - before_wrap);
    at_ += n;
    return n;
  }
  void publish() noexcept { cursor_->filled.store(at_, std::memory_order_release); }

 private:
  void look() noexcept { emptied_ = cursor_->emptied.load(std::memory_order_acquire); }

  std::uint64_t at_ = 0;
  std::uint64_t emptied_ = 0;  // as far as known
};

class RingDrain : public RingEnd {
 public:
  RingDrain(const Segment& segment, int from, int to) noexcept : RingEnd(segment, from, to) {}

  // Whether there was a message to begin.
  bool begin(Envelope& envelope) noexcept {
    const std::uint64_t start = next_line(at_);
    if (filled_ < start + sizeof(envelope)) {
      look();
      if (filled_ < start + sizeof(envelope)) return false;
    }
    std::memcpy(&envelope, bytes_ + offset(start), sizeof(envelope));
    at_ = start + sizeof(envelope);
    return true;
  }
  // How many of so many bytes were read; into nowhere where `into` is nullptr.
  std::size_t drain(std::byte* into, std::size_t most) noexcept {
    if (at_ + most > filled_) look();
    const std::size_t n = std::min(most, static_cast<std::size_t>(filled_ - at_));
    if (into != nullptr && n > 0) {
      const std::size_t before_wrap = std::min(n, size_ - offset(at_));
      std::memcpy(into, bytes_ + offset(at_), before_wrap);
      std::memcpy(into + before_wrap, bytes_, n - before_wrap);
    }
    at_ += n;
    return n;
  }
  // What was read makes room for the sender.
  void publish() noexcept { cursor_->emptied.store(at_, std::memory_order_release); }

 private:
  void look() noexcept { filled_ = cursor_->filled.load(std::memory_order_acquire); }

  std::uint64_t at_ = 0;
  std::uint64_t filled_ = 0;  // as far as known
};

}  // namespace coll

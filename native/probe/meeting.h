// SPDX-License-Identifier: Apache-2.0
// How ranks of one machine keep step while they measure it: words in their rings of slots, which no
// call uses meanwhile.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/deadline.h"
#include "transport/segment.h"

namespace coll {

// Each rank writes its own words only. Nothing clears them: what they are waited to become is new
// in each meeting, by a token that has never been used before.
class Meeting {
 public:
  // Of a rank's first slot the beginning belongs to the meeting.
  static constexpr std::size_t kControlBytes = 4096;
  enum class Word : std::uint8_t { met, called, count };

  // `shared`: ranks share cores, so who waits soon lets others run.
  Meeting(const Segment& segment, int rank, std::uint64_t token, double timeout, bool shared)
      : segment_(segment),
        rank_(rank),
        next_(token),
        line_(~token),
        shared_(shared),
        deadline_(timeout) {}

  int rank() const noexcept { return rank_; }
  int ranks() const noexcept { return static_cast<int>(segment_.shape().ranks); }
  const Segment& segment() const noexcept { return segment_; }

  // So many numbers that no word has ever held; the same on all ranks, which ask alike.
  std::uint64_t numbers(std::uint64_t count) noexcept {
    const std::uint64_t first = next_;
    next_ += count;
    return first;
  }

  // Returns on all ranks once all have come. Throws Error(timeout).
  void line_up();

  void say(Word word, std::uint64_t value) noexcept {
    at(rank_, word).store(value, std::memory_order_release);
  }
  std::uint64_t said(int peer, Word word) const noexcept {
    return at(peer, word).load(std::memory_order_acquire);
  }
  // Until the peer's word is one of the two, which is returned. Throws Error(timeout).
  std::uint64_t await(int peer, Word word, std::uint64_t value, std::uint64_t other) const;

  // Room for what a rank has found, for the others to read.
  std::byte* board(int rank) const noexcept { return segment_.slot_ring(rank) + kBoard; }
  static constexpr std::size_t kBoardBytes = 2048;

 private:
  static constexpr std::size_t kBoard = kControlBytes - kBoardBytes;

  std::atomic<std::uint64_t>& at(int rank, Word word) const noexcept {
    // Two lines apart: some CPUs fetch lines in pairs.
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(segment_.slot_ring(rank) +
                                                          2 * kLine * static_cast<int>(word));
  }

  Segment segment_;
  int rank_;
  std::uint64_t next_, line_;  // lines are counted apart: who is ahead is so by one
  bool shared_;
  Deadline deadline_;
};

}  // namespace coll

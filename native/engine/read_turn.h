// SPDX-License-Identifier: Apache-2.0
// Whether ranks tell each other in a call that their memory may be read. To look whether it may is
// two system calls, some 3 us where the shortest calls that may be read take 20 to 50; so rank 0
// says a call ahead whether the next one of its kind is to be read, and ranks look before that one
// alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace coll {

class ReadTurn {
 public:
  // Of the call that begins, on any rank: whether it looks, and says what it found.
  bool looks() const noexcept { return looks_; }
  void look_next(bool looks) noexcept { looks_ = looks; }

  // Of rank 0. Whether all could be read when they looked last.
  bool all_read() const noexcept { return all_read_; }
  void found(bool all_read) noexcept {
    if (!looks_) return;
    all_read_ = all_read;
    refused_ = all_read ? 0 : refused_ + 1;
  }
  // Where not all may be read: whether to look once more.
  bool looks_again() noexcept { return refused_ < kPatience || ++passed_ % kSeldom == 0; }

  // What was decided for the call that begins, when the one before it did; of a first one nothing.
  struct Decided {
    bool staged = false, tries = false;  // for the sake of learning
  };
  bool decided() const noexcept { return decided_; }
  Decided now() const noexcept { return next_; }
  void decide(Decided next) noexcept {
    next_ = next;
    decided_ = true;
  }

 private:
  static constexpr unsigned kPatience = 4, kSeldom = 256;

  bool looks_ = true, all_read_ = false, decided_ = false;
  Decided next_;
  unsigned refused_ = 0, passed_ = 0;
};

// By what tells calls apart. Two that share a turn look when the other one would.
class ReadTurns {
 public:
  ReadTurn& of(std::uint64_t hash) noexcept { return turns_[hash >> (64 - kBits)]; }

 private:
  static constexpr int kBits = 6;
  std::array<ReadTurn, std::size_t{1} << kBits> turns_;
};

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// What all ranks tell each other first, with room behind it for a vector that is longer than an
// opening, but so short that rounds of messages would take longer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "sparse/opening.h"

namespace coll {

class Openings {
 public:
  // `room`: bytes behind each, as many on all ranks.
  Openings(int ranks, std::size_t room);

  std::size_t bytes_each() const noexcept { return sizeof(Opening) + room_; }
  std::size_t room() const noexcept { return room_; }

  Opening& mine() noexcept { return *at(ranks_); }
  void tell(const SparseTerms& terms, const SparseStream& pairs);
  // What is to be gathered, and where to.
  const void* told() const noexcept { return at(ranks_); }
  void* heard() noexcept { return at(0); }

  const Opening& of(int rank) const noexcept { return *at(rank); }
  bool all_are_whole() const noexcept;
  // Bytes of the longest vector where there is room, of one beyond all room less; 0: none needs
  // any.
  std::size_t most_needed() const noexcept;
  // Of a rank that has told all. Throws Error where that is none of the stretch.
  SparseStream stream(const SparseTerms& terms, int rank, const SparseStream& stretch) const;

 private:
  Opening* at(int place) const noexcept;

  int ranks_;
  std::size_t room_;
  std::shared_ptr<std::byte[]> memory_;  // of all ranks, then this one's
};

// The room behind openings, by calls that are alike, as the last one of them has found it to pay.
// All ranks have found the same.
class OpeningRooms {
 public:
  static constexpr std::size_t kMost = 16 << 10;

  std::size_t of(std::uint64_t call) const noexcept {
    const auto found = rooms_.find(call);
    return found == rooms_.end() ? 0 : found->second;
  }
  // For vectors of so many bytes as messages, and a few more. 0: there is none.
  void set(std::uint64_t call, std::size_t needed);

 private:
  static constexpr std::size_t kCalls = 64;
  std::map<std::uint64_t, std::size_t> rooms_;
};

}  // namespace coll

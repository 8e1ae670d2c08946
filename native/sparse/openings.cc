// SPDX-License-Identifier: Apache-2.0
#include "sparse/openings.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "sparse/message.h"

namespace coll {
namespace {

// In the place of a call's: it is a part of what the ranks agree by.
constexpr std::uint64_t kName = 0x6f70656e696e6773;

}  // namespace

Openings::Openings(int ranks, std::size_t room)
    : ranks_(ranks),
      room_(room),
      memory_(new std::byte[(static_cast<std::size_t>(ranks) + 1) * bytes_each()]) {
  std::memset(memory_.get() + static_cast<std::size_t>(ranks) * bytes_each(), 0, bytes_each());
}

Opening* Openings::at(int place) const noexcept {
  return reinterpret_cast<Opening*>(memory_.get() + static_cast<std::size_t>(place) * bytes_each());
}

void Openings::tell(const SparseTerms& terms, const SparseStream& pairs) {
  mine() = Opening::of(terms, pairs);
  const std::size_t raw = pairs.entries * terms.value_bytes();  // a bound from below
  if (mine().whole != 0 || room_ == 0) return;
  mine().needed = raw;
  if (raw > OpeningRooms::kMost) return;
  const SparseMessage message = packed(terms, kName, {&pairs, 1});
  mine().needed = message.size;
  if (message.size > room_) return;
  mine().whole = Opening::kFollows;
  std::memcpy(&mine() + 1, message.bytes.get(), message.size);
}

bool Openings::all_are_whole() const noexcept {
  for (int r = 0; r < ranks_; ++r) {
    if (!of(r).all()) return false;
  }
  return true;
}

std::size_t Openings::most_needed() const noexcept {
  std::uint64_t most = 0;
  for (int r = 0; r < ranks_; ++r) most = std::max(most, of(r).needed);
  return static_cast<std::size_t>(most);
}

SparseStream Openings::stream(const SparseTerms& terms, int rank,
                              const SparseStream& stretch) const {
  const Opening& opening = of(rank);
  if (opening.whole != Opening::kFollows) return opening.stream(terms, stretch);
  if (opening.needed > room_) throw Error(Status::internal, "a sparse vector longer than its room");
  const auto* message = reinterpret_cast<const std::byte*>(&opening + 1);
  return unpacked(terms, kName, {message, opening.needed}, memory_, {&stretch, 1}).front();
}

void OpeningRooms::set(std::uint64_t call, std::size_t needed) {
  constexpr std::size_t kStep = 256;
  if (rooms_.size() >= kCalls) rooms_.clear();
  const std::size_t room = (needed + needed / 8 + kStep - 1) / kStep * kStep;
  if (needed == 0 || room > kMost) {
    rooms_.erase(call);
  } else {
    rooms_[call] = room;
  }
}

}  // namespace coll

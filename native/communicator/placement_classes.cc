// SPDX-License-Identifier: Apache-2.0
#include "communicator/placement_classes.h"

#include <algorithm>
#include <bit>

namespace coll {
namespace {

// Shorter than 8 KiB, and to 16, 32, 64 and 128 KiB, longer.
constexpr int kLengths = 5, kShortest = 13;

int length_class(Kind kind, std::size_t bytes) noexcept {
  const int length =
      std::clamp(static_cast<int>(std::bit_width(bytes)) - kShortest, 0, kLengths - 1);
  return static_cast<int>(kind) * kLengths + length;
}

}  // namespace

PlacementClass PlacementClasses::of(Kind kind, std::size_t bytes, const Choices& choices) noexcept {
  const Known asked = {length_class(kind, bytes), choices.near, choices.far};
  const auto found = std::find(known_.begin(), known_.end(), asked);
  if (found != known_.end()) return {static_cast<int>(found - known_.begin()), false};
  const std::size_t number = next_++ % kPlacementClasses;
  if (number == known_.size()) {
    known_.push_back(asked);  // there is room
  } else {
    known_[number] = asked;
  }
  ++given_[number];
  return {static_cast<int>(number), true};
}

}  // namespace coll

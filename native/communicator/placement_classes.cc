// SPDX-License-Identifier: Apache-2.0
#include "communicator/placement_classes.h"

#include <algorithm>
#include <bit>

namespace coll {
namespace {

// Shorter than 8 KiB, and to 16, 32, 64 and 128 KiB, longer.
constexpr int kLengths = 5, kShortest = 13;
static_assert(kKinds * kLengths <= kPlacementClasses);

int length_class(Kind kind, std::size_t bytes) noexcept {
  const int length =
      std::clamp(static_cast<int>(std::bit_width(bytes)) - kShortest, 0, kLengths - 1);
  return static_cast<int>(kind) * kLengths + length;
}

}  // namespace

int PlacementClasses::of(Kind kind, std::size_t bytes, const Choices& choices) noexcept {
  const Known asked = {length_class(kind, bytes), choices.near, choices.far};
  const auto found = std::find(known_.begin(), known_.end(), asked);
  const auto number = static_cast<int>(found - known_.begin());
  if (found != known_.end()) return number;
  if (number == kPlacementClasses) return asked.of_length;
  known_.push_back(asked);  // there is room
  return number;
}

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
#include "communicator/placement_ahead.h"

#include <algorithm>
#include <bit>

namespace coll {
namespace {

// Shorter than 8 KiB, and to 16, 32, 64 and 128 KiB, longer.
constexpr int kLengths = 5, kShortest = 13;
static_assert(kKinds * kLengths <= kPlacementClasses);

}  // namespace

int placement_class(Kind kind, std::size_t bytes) noexcept {
  const int length =
      std::clamp(static_cast<int>(std::bit_width(bytes)) - kShortest, 0, kLengths - 1);
  return static_cast<int>(kind) * kLengths + length;
}

}  // namespace coll

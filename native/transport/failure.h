// SPDX-License-Identifier: Apache-2.0
// The first cause of the end of a communicator, for all ranks to read: what broke first is told,
// not what broke because of it.
#pragma once

#include <array>
#include <string_view>

#include "base/error.h"
#include "transport/segment.h"

namespace coll {

struct Failure {
  Status status = Status::ok;
  int culprit = -1;   // the rank at fault, -1 none
  int reporter = -1;  // the rank that noticed
  std::array<char, kCauseText> text{};

  std::string_view sentence() const noexcept { return text.data(); }
};

// Records this cause unless there is one. Returns whether it was the first. Wakes nobody.
bool raise_failure(const Segment& segment, Status status, int culprit, int reporter,
                   std::string_view text) noexcept;

// For the hot path: one load.
inline bool failed(const Segment& segment) noexcept {
  return segment.failure().state.load(std::memory_order_acquire) != 0;
}

// The cause; status ok where there is none. Waits, a moment at most, for one being written.
Failure read_failure(const Segment& segment) noexcept;

}  // namespace coll

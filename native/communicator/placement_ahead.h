// SPDX-License-Identifier: Apache-2.0
// Where the cores are, as rank 0 says it some calls before: for calls too short to wait for it at
// their entrance. One line that hardly ever changes, which all ranks have in their caches.
#pragma once

#include <atomic>
#include <cstdint>

#include "communicator/ahead.h"
#include "transport/segment.h"

namespace coll {

// Of calls that rank 0 judges together (placement_classes.h).
inline constexpr int kPlacementClasses = 64;

// What is said of all classes, a bit for each.
struct PlacementsSaid {
  std::uint64_t far = 0, timed = 0;
};

class PlacementAhead {
 public:
  explicit PlacementAhead(const Segment& segment) : line_(&segment.header().ahead) {}

  // What holds in call number `call`, about to be entered: the same on all ranks.
  PlacementsSaid of(std::uint64_t call) const noexcept {
    const std::uint64_t from = line_->from.load(std::memory_order_acquire);
    const AheadLine::Told& told = line_->told[call >= from / 2 ? from & 1 : ~from & 1];
    return {told.far.load(std::memory_order_relaxed), told.timed.load(std::memory_order_relaxed)};
  }

  // Of rank 0, before its call number `call`: whether all have taken what it said last.
  bool free(std::uint64_t call) const noexcept {
    const std::uint64_t from = line_->from.load(std::memory_order_relaxed) / 2;
    return from == 0 || call >= from + kAhead;
  }
  // Says so, where it is free(): from which call on it holds.
  std::uint64_t say(const PlacementsSaid& said, std::uint64_t call) noexcept {
    const std::uint64_t which = ~line_->from.load(std::memory_order_relaxed) & 1;
    line_->told[which].far.store(said.far, std::memory_order_relaxed);
    line_->told[which].timed.store(said.timed, std::memory_order_relaxed);
    line_->from.store(2 * (call + kAhead) + which, std::memory_order_release);
    return call + kAhead;
  }

 private:
  AheadLine* line_;
};

}  // namespace coll

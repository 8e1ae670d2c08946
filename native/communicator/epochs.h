// SPDX-License-Identifier: Apache-2.0
// What all ranks of a group take for granted although it changes: where their cores are. A choice
// must be equal on all ranks, so rank 0 says for every epoch of calls what it has seen, half an
// epoch before. Nobody waits for it: a rank that begins a call knows that all peers have left the
// one kFingerprints before (Executor::enter), so rank 0 has spoken by then, and is not yet speaking
// of the epoch after the next.
#pragma once

#include <cstdint>

#include "base/placement.h"
#include "transport/segment.h"

namespace coll {

class Epochs {
 public:
  static constexpr std::uint64_t kCalls = 32;
  static_assert(kCalls / 2 > kFingerprints);

  // `inherited`: of the group that this one came from, at one and the same call of all its ranks.
  explicit Epochs(Placement inherited) noexcept : placement_(inherited) {}

  // Of the present epoch.
  Placement placement() const noexcept { return placement_; }

  // Before call number `call` is chosen. True where another placement holds from here on.
  bool turn(const Segment& segment, std::uint64_t call) noexcept {
    if (call % kCalls != 0) return false;
    const Placement before = placement_;
    placement_ =
        static_cast<Placement>(place(segment, call / kCalls).load(std::memory_order_relaxed));
    return placement_ != before;
  }

  // Rank 0, as it begins that call.
  static void say(const Segment& segment, std::uint64_t call, Placement seen) noexcept {
    if (call % kCalls != kCalls / 2) return;
    place(segment, call / kCalls + 1)
        .store(static_cast<std::uint32_t>(seen), std::memory_order_relaxed);
  }

 private:
  static std::atomic<std::uint32_t>& place(const Segment& segment, std::uint64_t epoch) noexcept {
    return segment.header().placements.of_epoch[epoch % 2];
  }

  Placement placement_;
};

}  // namespace coll

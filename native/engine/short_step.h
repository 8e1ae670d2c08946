// SPDX-License-Identifier: Apache-2.0
// A call of one tile, as one list of steps with all addresses in place: what is left of the plan
// for a call that takes no longer than a cache line's way. Longer ones walk through the plan's ops.
#pragma once

#include <atomic>
#include <cstdint>

namespace coll {

struct Fold;

struct ShortStep {
  enum class What : std::uint8_t {
    earn,        // waits until the slot is free
    await_tick,  // of a peer
    meet,        // the same, the first time in a call: whether the peer is in this call, too
    await_flag,  // of a message: exactly this tick of this call
    fold,
    few,    // a fold of two sources that are no more than a line
    copy,   // of one source that is no more than a line: `when` bytes
    raise,  // a flag
    post,   // this rank's tick
    leave   // the last one
  };

  std::atomic<std::uint64_t>* word = nullptr;
  const Fold* fold = nullptr;
  std::uint64_t when = 0;  // ticks after the base of the call
  What what = What::leave;
  std::uint16_t peer = 0;

  bool awaits() const noexcept {
    return what == What::await_flag || what == What::await_tick || what == What::meet;
  }
};

// What the steps of one call have in common, for as long as they run.
struct ShortCall {
  std::uint64_t base, fingerprint;  // of the GroupClock
  bool has_credit;                  // for its slot
};

// What a short call needs to begin, looked up while the one before it waited.
struct ShortAhead {
  std::uint64_t calls = ~std::uint64_t{0};  // its number; this one: of none
  std::size_t place = 0, slot = 0;
  const ShortStep* steps = nullptr;
};

}  // namespace coll

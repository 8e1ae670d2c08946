// SPDX-License-Identifier: Apache-2.0
// A call of one tile, as one list of steps with all addresses in place: what is left of the plan
// for a call that takes no longer than a cache line's way. Longer ones walk through the plan's ops.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace coll {

struct Fold;

struct ShortStep {
  enum class What : std::uint8_t {
    earn,        // waits until the slot is free
    await_tick,  // of a peer
    meet,        // the same, the first time in a call: whether the peer is in this call, too
    await_flag,  // of a message: exactly this tick of this call
    fold,
    copy,   // a fold of one source that is no more than a line: of `when` bytes
    raise,  // a flag
    post,   // this rank's tick
    leave   // the last one
  };

  std::atomic<std::uint64_t>* word = nullptr;
  const Fold* fold = nullptr;
  std::uint64_t when = 0;  // ticks after the base of the call
  What what = What::leave;
  std::uint16_t peer = 0;
};

template <std::size_t kBytes>
[[gnu::always_inline]] inline void copy_ends(std::byte* to, const std::byte* from,
                                             std::size_t n) noexcept {
  std::byte first[kBytes], last[kBytes];
  std::memcpy(first, from, kBytes);
  std::memcpy(last, from + n - kBytes, kBytes);
  std::memcpy(to, first, kBytes);
  std::memcpy(to + n - kBytes, last, kBytes);
}

inline constexpr std::size_t kFewBytes = 64;

// Up to kFewBytes, by two pieces that may overlap: a kernel's calls take longer than that.
inline void copy_few(std::byte* to, const std::byte* from, std::size_t n) noexcept {
  if (n >= 32) return copy_ends<32>(to, from, n);
  if (n >= 16) return copy_ends<16>(to, from, n);
  if (n >= 8) return copy_ends<8>(to, from, n);
  if (n >= 4) return copy_ends<4>(to, from, n);
  for (std::size_t i = 0; i < n; ++i) to[i] = from[i];
}

}  // namespace coll

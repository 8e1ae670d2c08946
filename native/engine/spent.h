// SPDX-License-Identifier: Apache-2.0
// How long the last calls took on a rank, of those that it timed, for rank 0 to learn from.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "transport/segment.h"

namespace coll {

// Of one call: its number and how long it took. Eight bytes: numbers repeat after 65,536 calls, of
// which one of the last two is asked for.
class Spent {
 public:
  constexpr Spent() = default;
  explicit constexpr Spent(std::uint64_t word) : word_(word) {}
  Spent(std::uint64_t call, double ns) noexcept
      : word_(static_cast<std::uint64_t>(ns) << kShift | (call & kNumber)) {}

  constexpr std::uint64_t word() const noexcept { return word_; }
  std::optional<double> of(std::uint64_t call) const noexcept {
    if ((word_ & kNumber) != (call & kNumber) || word_ >> kShift == 0) return std::nullopt;
    return static_cast<double>(word_ >> kShift);
  }

 private:
  static constexpr int kShift = 16;
  static constexpr std::uint64_t kNumber = 0xFFFF;
  std::uint64_t word_ = 0;
};

// The word before stays: where a rank needs nothing from rank 0, it has ended the next call when
// that one asks about this one.
inline void say_spent(DoneLine& done, Spent spent) noexcept {
  done.spent_before.store(done.spent.load(std::memory_order_relaxed), std::memory_order_relaxed);
  done.spent.store(spent.word(), std::memory_order_release);
}

inline std::optional<double> spent_in(const DoneLine& done, std::uint64_t call) noexcept {
  const auto ns = Spent(done.spent.load(std::memory_order_acquire)).of(call);
  return ns ? ns : Spent(done.spent_before.load(std::memory_order_relaxed)).of(call);
}

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Rank 0's choice between the plans for near and for far cores, for each plan and size, from how
// long calls took on the slowest rank: the root of a broadcast leaves long before the last
// receiver.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/trial.h"

namespace coll {

// What a rank says of the last call that it timed: its number and how long it took. Eight bytes:
// numbers repeat after 65,536 calls, of which the last is asked for.
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

class PlanTrial {
 public:
  // Whether call number `call` shall run the plan for far cores. `plan` names that for near ones:
  // how long another plan took says nothing of it.
  bool far(std::uint64_t plan, std::size_t bytes, std::uint64_t call) noexcept {
    now_ = {&of(plan, bytes), bytes, call, false};
    now_.far = now_.trial->second();
    return now_.far;
  }

  // Once all ranks have entered the call: `spent(n)` is how long call number n, before it, took on
  // the slowest one, if all have said so.
  template <class SlowestOf>
  void learn(SlowestOf spent) noexcept {
    if (before_.trial != nullptr) {
      if (const std::optional<double> ns = spent(before_.call)) {
        before_.trial->note(before_.far, before_.bytes, *ns);
      }
    }
    before_ = now_;
    now_ = {};
  }

  // The call runs neither plan.
  void forget() noexcept { before_ = {}; }

 private:
  struct Asked {
    Trial* trial = nullptr;
    std::size_t bytes = 0;
    std::uint64_t call = 0;
    bool far = false;
  };
  struct Known {
    std::uint64_t name = 0;
    Trial trial;
  };

  // Of two that fall on one place the later one begins anew.
  Trial& of(std::uint64_t plan, std::size_t bytes) noexcept {
    const auto size = static_cast<std::uint64_t>(std::bit_width(bytes));
    const std::uint64_t name = (plan * 64 + size) * 0x9E3779B97F4A7C15ULL | 1;
    Known& known = trials_[name >> (64 - kPlaces)];
    if (known.name != name) {
      if (before_.trial == &known.trial) before_ = {};
      known = {name, Trial()};
    }
    return known.trial;
  }

  static constexpr int kPlaces = 11;  // bits of their number
  std::vector<Known> trials_ = std::vector<Known>(std::size_t{1} << kPlaces);
  Asked now_, before_;
};

}  // namespace coll

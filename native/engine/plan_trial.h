// SPDX-License-Identifier: Apache-2.0
// Rank 0's choice between the plans for near and for far cores, per kind and size, from how long
// calls took on the slowest rank: the root of a broadcast leaves long before the last receiver.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/trial.h"
#include "schedule/layout.h"

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
  // Whether call number `call` shall run the plan for far cores.
  bool far(Kind kind, std::size_t bytes, std::uint64_t call) noexcept {
    auto& of_size = trials_[std::min<std::size_t>(std::bit_width(bytes), trials_.size() - 1)];
    now_ = {&of_size[static_cast<std::size_t>(kind)], bytes, call, false};
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
  std::vector<std::array<Trial, kKinds>> trials_ = std::vector<std::array<Trial, kKinds>>(48);
  Asked now_, before_;
};

}  // namespace coll

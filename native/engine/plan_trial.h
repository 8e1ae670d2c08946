// SPDX-License-Identifier: Apache-2.0
// Rank 0's choice between two plans of a call, for each plan and size, from how long calls took on
// the slowest rank: the root of a broadcast leaves long before the last receiver.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "engine/trial.h"

namespace coll {

// What is to be chosen: how far apart the cores are taken to be, whether arrays that could be
// reached are staged, or those that could be read by the kernel. Several may be asked before a call
// of which one turns out to count.
enum class Chosen : std::uint8_t { far, staged, not_read };
inline constexpr int kChosen = 3;

class PlanTrial {
 public:
  // Whether call number `call` shall run so. `plan` and `other` name the plans between which that
  // chooses: how long another one took says nothing of them. `wish`: it is settled that it shall,
  // or shall not.
  bool ask(Chosen what, std::uint64_t plan, std::uint64_t other, std::size_t bytes,
           std::uint64_t call, std::optional<bool> wish = std::nullopt) noexcept {
    Asked& asked = now_[static_cast<std::size_t>(what)];
    asked = {&of(name_of(plan, other, bytes, what)), bytes, call, false};
    asked.second = wish ? *wish : asked.trial->second();
    return asked.second;
  }
  // What it says of the call after the one that was asked for.
  bool next(Chosen what) noexcept { return now_[static_cast<std::size_t>(what)].trial->second(); }
  // Whether the last answer was for the sake of learning.
  bool tries(Chosen what) const noexcept {
    const Asked& asked = now_[static_cast<std::size_t>(what)];
    return asked.trial != nullptr && asked.trial->trying();
  }

  // Once all ranks have entered the call: `spent(n)` is how long call number n, before it, took on
  // the slowest one, if all have said so. `counts`: what this call says something about.
  template <class SlowestOf>
  void learn(std::initializer_list<Chosen> counts, SlowestOf spent) noexcept {
    for (const Asked& before : before_) {
      if (before.trial == nullptr) continue;
      if (const std::optional<double> ns = spent(before.call)) {
        before.trial->note(before.second, before.bytes, *ns);
      }
    }
    before_ = {};
    for (const Chosen what : counts) {
      before_[static_cast<std::size_t>(what)] = now_[static_cast<std::size_t>(what)];
    }
    now_ = {};
  }

 private:
  struct Asked {
    Trial* trial = nullptr;
    std::size_t bytes = 0;
    std::uint64_t call = 0;
    bool second = false;
  };
  static Trial alert_trial() noexcept { return Trial(1, true); }
  struct Known {
    std::uint64_t name = 0;
    Trial trial = alert_trial();
  };

  // Never 0. What a multiplication mixes lies in the upper bits.
  static std::uint64_t name_of(std::uint64_t plan, std::uint64_t other, std::size_t bytes,
                               Chosen what) noexcept {
    constexpr std::uint64_t kMix = 0x9E3779B97F4A7C15ULL;
    std::uint64_t name = plan * kMix;
    name = (name ^ name >> 32 ^ other) * kMix;
    const auto length = static_cast<std::uint64_t>(std::bit_width(bytes));
    name = (name ^ name >> 32 ^ length << 1 ^ static_cast<std::uint64_t>(what)) * kMix;
    return name | 1;
  }

  // Where a bucket is full, one of it begins anew: each in its turn, so that two never take one
  // place from each other again and again.
  Trial& of(std::uint64_t name) noexcept {
    Bucket& bucket = buckets_[name >> (64 - kBits)];
    for (Known& known : bucket.known) {
      if (known.name == name) return known.trial;
    }
    Known& taken = bucket.known[bucket.next++ % kWays];
    for (std::array<Asked, kChosen>* asked : {&before_, &now_}) {
      for (Asked& one : *asked) {
        if (one.trial == &taken.trial) one = {};
      }
    }
    taken = {name, alert_trial()};
    return taken.trial;
  }

  static constexpr int kBits = 7, kWays = 4;
  struct Bucket {
    std::array<Known, kWays> known{};
    std::uint32_t next = 0;
  };
  std::vector<Bucket> buckets_ = std::vector<Bucket>(std::size_t{1} << kBits);
  std::array<Asked, kChosen> now_, before_;
};

}  // namespace coll

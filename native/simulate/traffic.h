// SPDX-License-Identifier: Apache-2.0
// What a rank's program costs, without what it means: messages of so many cells, folds and copies,
// in the order in which the rank does them. Small, since thousands of ranks are simulated.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "schedule/schedule.h"
#include "schedule/symmetry.h"

namespace coll {

enum class Act : std::uint8_t { send, receive, fold, copy };  // values of the C interface

struct Deed {
  int peer = 0;   // of a message
  int cells = 0;  // of it, or of the target
  int round = 0;  // that of the schedule
  std::uint16_t operands = 1;
  Act act = Act::send;
  bool operator==(const Deed&) const = default;
};

std::vector<Deed> deeds_of(const Program& program);

// The programs of all ranks; of which one is kept where they are alike.
class Traffic {
 public:
  // Asks for the program of each rank once, or for that of rank 0 only. Throws
  // Error(out_of_memory) where there are more messages than can be simulated. Of a vector in
  // several tiles a rank is in all rounds at one time, each with a tile of its own: it begins all
  // sends, and then takes what comes (`tiled`).
  Traffic(int p, Symmetry symmetry, const std::function<Program(int rank)>& program,
          bool tiled = false);

  int p() const { return p_; }
  bool tiled() const { return tiled_; }
  // In which messages travel.
  int rounds() const { return static_cast<int>(std::ranges::count(used_, true)); }
  std::int64_t messages() const { return messages_; }
  std::span<const Deed> of(int rank) const {
    return programs_[symmetry_ == Symmetry::none ? static_cast<std::size_t>(rank) : 0];
  }
  int peer(int rank, const Deed& deed) const noexcept {
    switch (symmetry_) {
      case Symmetry::rotation: {
        const int peer = rank + deed.peer;
        return peer < p_ ? peer : peer - p_;
      }
      case Symmetry::mirrored: {
        const int peer = rank % 2 == 0 ? rank + deed.peer : rank - deed.peer;
        return peer < 0 ? peer + p_ : peer < p_ ? peer : peer - p_;
      }
      case Symmetry::exclusive_or:
        return rank ^ deed.peer;
      default:
        return deed.peer;
    }
  }

 private:
  void keep(std::vector<Deed> deeds, std::int64_t ranks);

  int p_;
  Symmetry symmetry_;
  bool tiled_;
  std::vector<bool> used_;  // by round
  std::int64_t messages_ = 0;
  std::vector<std::vector<Deed>> programs_;
};

// The most messages of one simulation: some minutes, and some gigabytes.
inline constexpr std::int64_t kMostMessages = std::int64_t{1} << 28;

}  // namespace coll

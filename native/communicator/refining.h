// SPDX-License-Identifier: Apache-2.0
// Rank 0's part of refining the rules while a program runs: from how long the program's own calls
// took, among all ranks, to what all shall run next.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "communicator/call_times.h"
#include "schedule/schedule.h"
#include "select/refiner.h"
#include "topology/machine_costs.h"

namespace coll {

class Refining {
 public:
  // `crowded`: as of a Wish.
  Refining(int ranks, int most_lag, double budget, const MachineCosts& machine, bool crowded);
  Refining(const Refining&) = delete;
  Refining& operator=(const Refining&) = delete;

  // A call is done whose rule may be refined, on a vector of so many bytes; `timed`: all ranks tell
  // when they were in it.
  void note(std::uint64_t call, Kind kind, std::size_t bytes, bool timed);
  // Learns how long calls before this one took, which all ranks have left by now, or will soon.
  void learn(const CallTimes& times, std::uint64_t call);
  // What was announced last is in force from the next call on: what ran before says nothing of it.
  void begins() noexcept;

  Refiner& refiner() noexcept { return refiner_; }

 private:
  struct Pending {
    std::uint64_t call = 0;  // 0: none
    Kind kind = Kind::barrier;
    std::size_t bytes = 0;
  };

  std::vector<TunedLine> rivals(Kind kind, std::size_t bytes) noexcept;

  int ranks_, most_lag_;
  MachineCosts machine_;
  bool crowded_;
  Refiner refiner_;
  std::array<Pending, kTimedCalls> pending_{};
};

}  // namespace coll

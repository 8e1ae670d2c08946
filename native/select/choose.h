// SPDX-License-Identifier: Apache-2.0
// Which plan a call gets. Reads only values that are equal on all ranks: the choice must be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/placement.h"
#include "plan/plan.h"
#include "schedule/schedule.h"
#include "select/tuned.h"

namespace coll {

// All that distinguishes one plan of a group from another.
struct Choice {
  int algorithm = 0;  // in algorithms()
  Mode mode = Mode::staged;
  int lag = 0;
  std::size_t tile_bytes = 0;  // stage bytes per tile
  bool operator==(const Choice&) const = default;
};

inline constexpr int kUnchosen = -1;

// Messages of up to so many bytes travel with their flag.
inline constexpr std::size_t kInlineBytes = 4096;

// Numbers from here on are schedules that a communicator was given (communicator/plans.h), and
// judged by it.
inline constexpr int kGivenSchedules = 1 << 12;

// What a caller leaves to the choice, and what not.
struct Wish {
  int algorithm = kUnchosen, mode = kUnchosen;
  bool rank_order = false;  // the operation does not commute
  bool canonical = false;   // results have the canonical tree of their operands,
  bool one_fold = false;    // made by one op
  bool unequal = false;     // blocks of an alltoall are not all of one size
  bool converts = false;    // elements are narrow floats that are converted to be folded
  bool crowded = false;     // there are fewer cores than ranks, on the machine that these share,
  bool in_turns = false;    // and each rank is pinned to another one than the rank before it
  bool operator==(const Wish&) const = default;
};

// What a call may run: which it is, the ranks tell each other, at its entrance or before.
struct Choices {
  Choice near, far;                    // by how far apart the cores are
  std::optional<Choice> within_reach;  // where some rank's buffer is within reach of the others
  std::optional<Choice> read;          // where all may read each other's memory by the kernel
  bool placed = false;                 // it matters how far apart the cores are:
  bool ahead = false;                  // rank 0 says so before the call; else at its entrance
  std::uint64_t table = 0;             // the id of what was measured, where it chose
};

// `bytes` of the whole vector. Throws Error where the wished algorithm is none of this kind, not
// for so many ranks, or does not keep the order of ranks where it must.
// What was measured (`tuned`) chooses where the caller leaves algorithm and mode open.
Choices choose(Kind kind, int ranks, std::size_t bytes, const Wish& wish = {},
               const Tuned& tuned = {});

}  // namespace coll

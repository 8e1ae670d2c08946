// SPDX-License-Identifier: Apache-2.0
// What it costs ranks of one machine to compute and to move bytes through the memory that they
// share: measured by probe/, used by simulate/. A value, the same on all ranks that use it.
#pragma once

#include <array>
#include <cstddef>

#include "base/placement.h"

namespace coll {

// Seconds per byte, by how many bytes are worked on. Between two points the cost is taken on the
// line over the logarithm of the bytes, and beyond the ends that of the end: caches end gradually.
struct CostCurve {
  static constexpr std::size_t kPoints = 4;
  std::array<double, kPoints> bytes{};  // ascending
  std::array<double, kPoints> seconds_per_byte{};

  double at(double n) const noexcept;
  // As many times the cost everywhere.
  CostCurve scaled(double times) const noexcept;
  bool operator==(const CostCurve&) const = default;
};

// Between two cores, by the bytes of a message. To write is into a slot as calls use it: from the
// last time on that the other has read there, tiles have gone through others
// (transport/slot_turns.h).
struct CoreCosts {
  double flag = 0;           // seconds until one sees what the other has stored
  CostCurve read;            // what the other has just written
  CostCurve write;           // over what the other has read
  CostCurve streamed_read;   // what the other has written around the caches
  CostCurve streamed_write;  // over what the other has read, around the caches
  bool operator==(const CoreCosts&) const = default;
};

struct MachineCosts {
  int cores = 0;             // that the ranks have between them; 0: one each
  double private_cache = 0;  // bytes, of a core
  double shared_cache = 0;   // bytes, of several
  double op = 0;             // seconds of an op of a plan, whatever it moves
  double call = 0;           // seconds of a call, whatever it does
  double turn = 0;           // seconds until a core works for another rank
  double fold = 0;           // seconds per byte of an operand, where memory costs nothing
  // Of a rank's own data, by the bytes of all that it goes through in a call.
  CostCurve read, write;
  CostCurve stream;  // written around the caches
  std::array<CoreCosts, kPlacements> between;
  std::array<bool, kPlacements> measured{};  // else derived from the other placement

  const CoreCosts& at(Placement placement) const noexcept {
    return between[static_cast<std::size_t>(placement)];
  }
  bool operator==(const MachineCosts&) const = default;
};

// One-way flags that take no longer are those of near cores: seconds.
inline constexpr double kNearFlag = 120e-9;

// Of a machine with two cores of an AMD EPYC (family 25), near and far: where nothing is measured.
MachineCosts usual_costs();

// Fills in the placement that was not measured, in the proportion that the usual costs have.
void derive_other_placement(MachineCosts& costs, Placement measured);

// Throws Error(invalid_argument), naming the value, where one is not finite or below 0, or where
// the points of a curve do not ascend.
void check_costs(const MachineCosts& costs);

}  // namespace coll

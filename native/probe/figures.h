// SPDX-License-Identifier: Apache-2.0
// What a rank finds of its machine, as plain numbers that ranks can exchange.
#pragma once

#include <array>
#include <cstddef>
#include <limits>

#include "topology/machine_costs.h"

namespace coll {

// Seconds, and seconds per byte of one operand; NaN: not measured.
struct Figures {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  using Points = std::array<double, CostCurve::kPoints>;
  static constexpr Points kNoPoints = {kNone, kNone, kNone, kNone};

  double flag = kNone;  // one way to another rank
  double op = kNone, turn = kNone;
  // Of own data: one source to one destination, two sources folded into one, and the first of these
  // around the caches.
  Points copy = kNoPoints, add = kNoPoints, stream = kNoPoints;
  // Of a message: from own data into the stage, and from the other's stage into own data; the same
  // with the stage written around the caches.
  Points stage = kNoPoints, fetch = kNoPoints, stream_stage = kNoPoints, stream_fetch = kNoPoints;
};

// The bytes at which curves are measured: all of a rank's data, and a message.
struct ProbedSizes {
  Figures::Points wholes{}, messages{};
};

// How far apart the cores are, by the median of what each rank found.
Placement placement_of(const Figures& median);

// Of what each rank found the median, taken apart: reading costs what a second source does.
MachineCosts costs_of(const Figures& median, const ProbedSizes& sizes);

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
#include "probe/figures.h"

#include <algorithm>
#include <cmath>

namespace coll {
namespace {

// What is left of a cost without a part of it: noise never makes it vanish.
double without(double whole, double part) {
  constexpr double kLeast = 0.1;
  return std::max(whole - part, kLeast * whole);
}

CostCurve curve(const Figures::Points& bytes, const Figures::Points& costs) {
  return {.bytes = bytes, .seconds_per_byte = costs};
}

}  // namespace

Placement placement_of(const Figures& median) {
  return median.flag > kNearFlag ? Placement::far : Placement::near;
}

MachineCosts costs_of(const Figures& f, const ProbedSizes& sizes) {
  MachineCosts costs = usual_costs();
  costs.op = f.op;
  costs.turn = f.turn;
  costs.fold = f.add.front() / 2;
  Figures::Points read{}, write{}, stream{};
  for (std::size_t i = 0; i < read.size(); ++i) {
    read[i] = std::min(without(f.add[i], f.copy[i]), 0.9 * f.copy[i]);
    write[i] = f.copy[i] - read[i];
    stream[i] = without(f.stream[i], read[i]);
  }
  costs.read = curve(sizes.wholes, read);
  costs.write = curve(sizes.wholes, write);
  costs.stream = curve(sizes.wholes, stream);
  if (std::isnan(f.flag)) return costs;  // one rank: nobody to measure it with
  const Placement placement = placement_of(f);
  CoreCosts& between = costs.between[static_cast<std::size_t>(placement)];
  between.flag = f.flag;
  for (std::size_t i = 0; i < read.size(); ++i) {
    const double n = sizes.messages[i];
    between.write.seconds_per_byte[i] = without(f.stage[i], costs.read.at(2 * n));
    between.read.seconds_per_byte[i] = without(f.fetch[i], costs.write.at(2 * n));
    between.streamed_write.seconds_per_byte[i] = without(f.stream_stage[i], costs.read.at(2 * n));
    between.streamed_read.seconds_per_byte[i] = without(f.stream_fetch[i], costs.write.at(2 * n));
  }
  for (CostCurve* one :
       {&between.read, &between.write, &between.streamed_read, &between.streamed_write}) {
    one->bytes = sizes.messages;
  }
  costs.measured[static_cast<std::size_t>(placement)] = true;
  derive_other_placement(costs, placement);
  return costs;
}

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
#include "topology/machine_costs.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"

namespace coll {
namespace {

constexpr double kKiB = 1024, kMiB = kKiB * kKiB;
constexpr std::array kMessages = {4 * kKiB, 16 * kKiB, 64 * kKiB, 256 * kKiB};
constexpr std::array kWholes = {64 * kKiB, 1 * kMiB, 4 * kMiB, 64 * kMiB};

// Of rates in bytes per nanosecond.
CostCurve of_rates(const std::array<double, CostCurve::kPoints>& bytes,
                   const std::array<double, CostCurve::kPoints>& rates) {
  CostCurve curve{.bytes = bytes, .seconds_per_byte = {}};
  for (std::size_t i = 0; i < rates.size(); ++i) curve.seconds_per_byte[i] = 1e-9 / rates[i];
  return curve;
}

double proportion(double a, double b) { return b > 0 ? a / b : 1; }

// In the proportion of the two, point by point of the usual ones.
CostCurve in_proportion(const CostCurve& known, const CostCurve& usual, const CostCurve& wanted) {
  CostCurve curve = known;
  for (std::size_t i = 0; i < CostCurve::kPoints; ++i) {
    curve.seconds_per_byte[i] *= proportion(wanted.at(known.bytes[i]), usual.at(known.bytes[i]));
  }
  return curve;
}

void check_number(double value, const char* name) {
  if (std::isfinite(value) && value >= 0) return;
  throw Error(Status::invalid_argument, std::string("costs of a machine: ") + name + " is " +
                                            std::to_string(value) +
                                            ": give a finite number, not below 0");
}

void check_curve(const CostCurve& curve, const char* name) {
  for (const double bytes : curve.bytes) check_number(bytes, name);
  for (const double cost : curve.seconds_per_byte) check_number(cost, name);
  if (std::ranges::is_sorted(curve.bytes) && curve.bytes.front() > 0) return;
  throw Error(Status::invalid_argument,
              std::string("costs of a machine: the points of ") + name +
                  " do not ascend from 1 byte on: give them from the fewest bytes to the most");
}

}  // namespace

double CostCurve::at(double n) const noexcept {
  if (n <= bytes.front()) return seconds_per_byte.front();
  for (std::size_t i = 1; i < kPoints; ++i) {
    if (n > bytes[i]) continue;
    const double share = std::log(n / bytes[i - 1]) / std::log(bytes[i] / bytes[i - 1]);
    return seconds_per_byte[i - 1] + share * (seconds_per_byte[i] - seconds_per_byte[i - 1]);
  }
  return seconds_per_byte.back();
}

CostCurve CostCurve::scaled(double times) const noexcept {
  CostCurve curve = *this;
  for (double& cost : curve.seconds_per_byte) cost *= times;
  return curve;
}

MachineCosts usual_costs() {
  MachineCosts costs;
  costs.private_cache = kMiB;
  costs.shared_cache = 32 * kMiB;
  costs.op = 15e-9;
  costs.call = 100e-9;
  costs.turn = 0.6e-6;
  costs.fold = 1e-9 / 70;
  costs.read = of_rates(kWholes, {110, 100, 50, 18});
  costs.write = of_rates(kWholes, {100, 90, 46, 12});
  costs.stream = of_rates(kWholes, {20, 20, 20, 20});
  CoreCosts& near = costs.between[static_cast<std::size_t>(Placement::near)];
  near.flag = 35e-9;
  near.read = of_rates(kMessages, {20, 25, 29, 32});
  near.write = of_rates(kMessages, {45, 45, 45, 45});
  near.streamed_read = of_rates(kMessages, {11, 11, 11, 11});
  near.streamed_write = of_rates(kMessages, {34, 34, 34, 34});
  CoreCosts& far = costs.between[static_cast<std::size_t>(Placement::far)];
  far.flag = 190e-9;
  far.read = of_rates(kMessages, {3.7, 6, 11, 14});
  far.write = of_rates(kMessages, {2.4, 2.4, 2.4, 4.5});
  far.streamed_read = of_rates(kMessages, {3.7, 6, 11, 11});
  far.streamed_write = of_rates(kMessages, {34, 34, 34, 34});
  return costs;
}

void derive_other_placement(MachineCosts& costs, Placement measured) {
  const Placement other = measured == Placement::near ? Placement::far : Placement::near;
  const MachineCosts usual = usual_costs();
  const CoreCosts &known = costs.at(measured), &from = usual.at(measured), &to = usual.at(other);
  CoreCosts& derived = costs.between[static_cast<std::size_t>(other)];
  derived.flag = known.flag * proportion(to.flag, from.flag);
  derived.read = in_proportion(known.read, from.read, to.read);
  derived.write = in_proportion(known.write, from.write, to.write);
  derived.streamed_read = in_proportion(known.streamed_read, from.streamed_read, to.streamed_read);
  derived.streamed_write =
      in_proportion(known.streamed_write, from.streamed_write, to.streamed_write);
}

void check_costs(const MachineCosts& costs) {
  check_number(costs.cores, "cores");
  check_number(costs.private_cache, "private_cache");
  check_number(costs.shared_cache, "shared_cache");
  check_number(costs.op, "op");
  check_number(costs.call, "call");
  check_number(costs.turn, "turn");
  check_number(costs.fold, "fold");
  check_curve(costs.read, "read");
  check_curve(costs.write, "write");
  check_curve(costs.stream, "stream");
  for (const CoreCosts& between : costs.between) {
    check_number(between.flag, "flag");
    check_curve(between.read, "read between cores");
    check_curve(between.write, "write between cores");
    check_curve(between.streamed_read, "streamed_read");
    check_curve(between.streamed_write, "streamed_write");
  }
}

}  // namespace coll

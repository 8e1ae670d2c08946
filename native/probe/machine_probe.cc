// SPDX-License-Identifier: Apache-2.0
#include "probe/machine_probe.h"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <string>
#include <type_traits>

#include "base/error.h"
#include "base/index.h"
#include "probe/exchanges.h"
#include "probe/figures.h"
#include "probe/meeting.h"
#include "probe/own_work.h"
#include "probe/samples.h"
#include "transport/core_cache.h"
#include "transport/usable_cores.h"

namespace coll {
namespace {

constexpr double kKiB = 1024, kMiB = kKiB * kKiB;
// Shares of the time. Flags have a millisecond in all.
constexpr double kOfExchanges = 0.4, kOfOwnWork = 0.4, kOfFirstTouch = 0.2;
constexpr double kFlagSeconds = 1e-3;

double lines(double bytes) { return std::max(std::floor(bytes / 192), 1.0) * 192; }

// Within the private cache, wholly out of it, within the shared one, and beyond, as far as there is
// time to touch it. Of twice a cache a copy, which touches two thirds, still finds some.
Figures::Points whole_sizes(const MachineCosts& costs, int ranks, double seconds) {
  constexpr double kTouchedPerSecond = 1e9, kMost = 32 * kMiB;
  const double touched = std::clamp(kOfFirstTouch * seconds * kTouchedPerSecond, kMiB, kMost);
  const double beyond = std::min(std::max(2 * costs.shared_cache / ranks, 8 * kMiB), touched);
  const double half = std::min(costs.private_cache / 2, beyond / 16);
  const double out = 8 * half;
  const double between = std::clamp(costs.shared_cache / (2 * ranks), 1.25 * out, beyond / 1.25);
  return {lines(half), lines(out), lines(between), lines(beyond)};
}

Figures::Points message_sizes(const Segment& segment) {
  constexpr double kMost = 256 * kKiB, kLeast = 4 * kKiB;
  const auto slot = static_cast<double>(segment.shape().slot_bytes);
  const double most = std::min(kMost, slot - Meeting::kControlBytes);
  if (most < kLeast) {
    throw Error(Status::unsupported, "slots of " + std::to_string(segment.shape().slot_bytes) +
                                         " bytes are too small to measure the machine in: set "
                                         "larger ones");
  }
  const auto whole = [&](double share) { return std::floor(most / share / kLine) * kLine; };
  return {whole(64), whole(16), whole(4), whole(1)};
}

// How long a rank is gone that lets others run.
double turn_seconds() {
  std::vector<double> samples(33);
  for (double& sample : samples) {
    const double begin = probe_clock();
    sched_yield();
    sample = probe_clock() - begin;
  }
  return typical(samples);
}

double median_of(std::vector<double>& values) {
  std::erase_if(values, [](double v) { return std::isnan(v); });
  if (values.empty()) return Figures::kNone;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Of each number what ranks found in the median, the same on all of them.
Figures agreed(Meeting& meeting, const Figures& own) {
  constexpr std::size_t kNumbers = sizeof(Figures) / sizeof(double);
  using Numbers = std::array<double, kNumbers>;
  static_assert(sizeof(Numbers) == sizeof(Figures));
  static_assert(sizeof(Numbers) <= Meeting::kBoardBytes);
  std::memcpy(meeting.board(meeting.rank()), &own, sizeof own);
  meeting.line_up();
  std::vector<Numbers> found(index(meeting.ranks()));
  for (int r = 0; r < meeting.ranks(); ++r) {
    std::memcpy(&found[index(r)], meeting.board(r), sizeof(Numbers));
  }
  meeting.line_up();  // the boards are read
  Numbers numbers{};
  for (std::size_t i = 0; i < kNumbers; ++i) {
    std::vector<double> values;
    for (const Numbers& of_rank : found) values.push_back(of_rank[i]);
    numbers[i] = median_of(values);
  }
  return std::bit_cast<Figures>(numbers);
}

// Everybody's flags, row by row. A board has room for so many.
std::vector<double> all_flags(Meeting& meeting, const std::vector<double>& own) {
  const std::size_t p = own.size(), room = std::min(p, Meeting::kBoardBytes / sizeof(double));
  std::memcpy(meeting.board(meeting.rank()), own.data(), room * sizeof(double));
  meeting.line_up();
  std::vector<double> all(p * p);
  for (std::size_t r = 0; r < p; ++r) {
    std::memcpy(&all[r * p], meeting.board(static_cast<int>(r)), room * sizeof(double));
  }
  meeting.line_up();
  return all;
}

// What rank 0 makes of it: the same on all ranks, whatever each thinks of its caches.
MachineCosts shared_by_all(Meeting& meeting, const MachineCosts& own) {
  static_assert(std::is_trivially_copyable_v<MachineCosts>);
  static_assert(sizeof own <= Meeting::kBoardBytes);
  MachineCosts costs;
  if (meeting.rank() == 0) std::memcpy(meeting.board(0), &own, sizeof own);
  meeting.line_up();
  std::memcpy(&costs, meeting.board(0), sizeof costs);
  meeting.line_up();
  return costs;
}

// That of a rank to the others; where ranks share cores, to the one that is least in its way.
double flag_of(const std::vector<double>& row, bool shared) {
  std::vector<double> met;
  std::ranges::copy_if(row, std::back_inserter(met), [](double v) { return v > 0; });
  if (met.empty()) return Figures::kNone;
  return shared ? std::ranges::min(met) : median_of(met);
}

}  // namespace

Probed probe_machine(const Segment& segment, int rank, const ProbedWork& work,
                     const ProbeTask& task) {
  MachineCosts known = usual_costs();
  known.private_cache = static_cast<double>(core_cache());
  if (const std::size_t bytes = shared_cache(); bytes > 0) {
    known.shared_cache = static_cast<double>(bytes);
  }
  const int ranks = static_cast<int>(segment.shape().ranks), cores = shared_cores(segment);
  const double enough = 4 * task.seconds + task.timeout;
  Meeting meeting(segment, rank, task.token, enough, cores > 0);
  const ProbedSizes sizes{.wholes = whole_sizes(known, ranks, task.seconds),
                          .messages = message_sizes(segment)};
  OwnWork own(work, sizes.wholes);
  meeting.line_up();
  Probed probed;
  const std::vector<double> row = flags_to_others(meeting, kFlagSeconds);
  Figures figures;
  figures.flag = flag_of(row, cores > 0);
  figures.turn = turn_seconds();
  const Slots slots{.placement = placement_of(agreed(meeting, figures)),
                    .second_cache = core_cache()};
  measure_exchanges(meeting, work, sizes.messages, slots, kOfExchanges * task.seconds, figures);
  meeting.line_up();
  own.measure(meeting, kOfOwnWork * task.seconds, figures);
  MachineCosts costs = costs_of(agreed(meeting, figures), sizes);
  costs.private_cache = known.private_cache;
  costs.shared_cache = known.shared_cache;
  costs.cores = cores;
  probed.costs = shared_by_all(meeting, costs);
  probed.flags = all_flags(meeting, row);
  return probed;
}

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
#include "select/rivals.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "algorithms/algorithm.h"
#include "plan/lower.h"
#include "simulate/memory_time.h"

namespace coll {
namespace {

constexpr std::size_t kMostRivals = 4;
constexpr double kPromising = 1.5;        // times what the rule is predicted to take, at most
constexpr double kSameTime = 1e-9;        // relative: plans of equal schedules take equal times
constexpr std::size_t kAlone = 64 << 10;  // from here on calls do not follow each other at once
constexpr std::size_t kLargeTiles = 256 << 10, kSmallTiles = 64 << 10;

struct Promise {
  Choice choice;
  double seconds;
};

std::vector<Choice> rival_parameters(int algorithm, std::size_t longest, int most_lag) {
  if (longest <= kInlineBytes) {
    return {{.algorithm = algorithm, .mode = Mode::inlined, .lag = 0, .tile_bytes = 0}};
  }
  const int lag = std::min(1, most_lag);
  std::vector<Choice> made = {{algorithm, Mode::staged, lag, kLargeTiles}};
  if (longest > kLargeTiles) made.push_back({algorithm, Mode::staged, lag, kSmallTiles});
  return made;
}

bool same_time(double a, double b) noexcept {
  return std::abs(a - b) <= kSameTime * std::max(a, b);
}

}  // namespace

double predicted_seconds(const Schedule& schedule, const Choice& choice, std::size_t bytes,
                         const MachineCosts& machine) {
  const Plan plan = lower(schedule, {.mode = choice.mode, .lag = choice.lag});
  MemoryTask task;
  task.bytes = static_cast<double>(bytes);
  task.tile_bytes = static_cast<double>(choice.tile_bytes);
  task.alone = true;
  const double alone = memory_seconds(plan, machine, task);
  if (bytes >= kAlone) return alone;
  task.alone = false;
  return std::sqrt(alone * memory_seconds(plan, machine, task));
}

std::vector<TunedLine> rivals_of_rule(Kind kind, int ranks, std::size_t bytes, int most_lag,
                                      const MachineCosts& machine, bool crowded) {
  if (ranks < 2 || ranks > kMostRivalRanks || bytes == 0) return {};
  const std::size_t longest = (std::bit_floor(bytes) << 1) - 1;
  const Choice rule = choose(kind, ranks, bytes, {.crowded = crowded}).near;
  const auto predict = [&](const Choice& choice) {
    const Algorithm& algorithm = *algorithms()[static_cast<std::size_t>(choice.algorithm)];
    return predicted_seconds(make_schedule(algorithm, ranks), choice, bytes, machine);
  };
  const double usual = predict(rule);
  std::vector<Promise> found;
  int index = -1;
  for (const Algorithm* a : algorithms()) {
    ++index;
    if (a->kind != kind || !a->fits(ranks)) continue;
    for (const Choice& choice : rival_parameters(index, longest, most_lag)) {
      const double seconds = predict(choice);
      const bool known =
          same_time(seconds, usual) || std::ranges::any_of(found, [&](const Promise& f) {
            return same_time(f.seconds, seconds);
          });
      if (!known && seconds <= kPromising * usual) found.push_back({choice, seconds});
    }
  }
  std::ranges::sort(found, {}, &Promise::seconds);
  std::vector<TunedLine> lines;
  for (const Promise& f : found) {
    if (lines.size() == kMostRivals) break;
    lines.push_back({.kind = kind,
                     .algorithm = f.choice.algorithm,
                     .mode = f.choice.mode,
                     .lag = f.choice.lag,
                     .tile_bytes = f.choice.tile_bytes});
  }
  return lines;
}

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
#include "communicator/placement_trials.h"

#include <algorithm>

namespace coll {
namespace {

constexpr Placement other(Placement placement) noexcept {
  return placement == Placement::near ? Placement::far : Placement::near;
}

// Whether one way is so many times as fast as the other.
constexpr bool differs(double gain, double clearly) noexcept {
  return gain > clearly || gain * clearly < 1;
}

}  // namespace

double PlacementTrials::Samples::median() noexcept {
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(count / 2);
  std::nth_element(seconds.begin(), middle, seconds.begin() + static_cast<std::ptrdiff_t>(count));
  return *middle;
}

Placement PlacementTrials::now() const noexcept {
  return trial_.turn % 2 == 0 ? trial_.usual : other(trial_.usual);
}

// From which call on it holds.
std::uint64_t PlacementTrials::say(Placement placement, std::uint64_t call,
                                   PlacementAhead& ahead) noexcept {
  const std::uint64_t bit = std::uint64_t{1} << trial_.of_class;
  said_.far = placement == Placement::far ? said_.far | bit : said_.far & ~bit;
  said_.timed = on_ ? bit : 0;
  return ahead.say(said_, call);
}

void PlacementTrials::begin(int of_class, std::uint64_t plan, std::uint64_t call,
                            PlacementAhead& ahead) noexcept {
  if (!ahead.free(call)) return;
  const bool far = (said_.far >> of_class & 1) != 0;
  trial_ = {.of_class = of_class, .plan = plan, .usual = far ? Placement::far : Placement::near};
  on_ = true;
  watched_ = {};
  trial_.from = say(trial_.usual, call, ahead);
}

void PlacementTrials::go_on(int of_class, std::uint64_t plan, std::uint64_t call,
                            PlacementAhead& ahead, const CallTimes& times) noexcept {
  learn(call, times);
  const bool enough = trial_.samples >= kSamples || call > trial_.from + kManyCalls;
  if (enough && ahead.free(call)) {
    ++trial_.turn;
    if (decided()) {
      end(call, ahead);
      return;
    }
    trial_.samples = 0;
    trial_.asked = {};
    trial_.from = say(now(), call, ahead);
  }
  const bool counts = of_class == trial_.of_class && plan == trial_.plan && call >= trial_.from;
  trial_.asked[call % kTimedCalls] = counts ? call : 0;
}

// Whether calls take as long as they did.
void PlacementTrials::look(std::uint64_t call, const CallTimes& times) noexcept {
  const std::optional<double> seconds = times.of(watched_.call);
  if (seconds) {
    Uses& uses = uses_[static_cast<std::size_t>(watched_.of_class)];
    if (uses.drift.shown_by(watched_.plan, *seconds)) {
      uses.due = std::min(uses.due, std::max(uses.calls, kRest));
    }
  }
  if (seconds || call >= watched_.call + kTimedCalls) watched_ = {};
}

// All ranks have left calls before this one, or will soon, and said when.
void PlacementTrials::learn(std::uint64_t call, const CallTimes& times) noexcept {
  Samples& samples = trial_.of[static_cast<std::size_t>(now())];
  for (std::uint64_t& asked : trial_.asked) {
    if (asked == 0 || asked >= call || trial_.samples == kSamples) continue;
    if (const std::optional<double> seconds = times.of(asked)) {
      samples.seconds[samples.count++] = *seconds;
      ++trial_.samples;
      asked = 0;
    }
  }
}

std::optional<double> PlacementTrials::Trial::gain_of_far() noexcept {
  auto& [near, far] = of;
  if (near.count < kSamples || far.count < kSamples) return std::nullopt;
  return near.median() / far.median();
}

bool PlacementTrials::decided() noexcept {
  if (trial_.turn == kTurns) return true;
  if (trial_.turn % 2 != 0) return false;
  const std::optional<double> gain = trial_.gain_of_far();
  return gain && differs(*gain, kBeyondDoubt);
}

// Who has not been asked yet begins with it, too.
void PlacementTrials::all_moved_to(Placement placement) noexcept {
  said_.far = placement == Placement::far ? ~std::uint64_t{0} : 0;
  for (Uses& uses : uses_) uses.due = std::min(uses.due, std::max(uses.calls, kFirst));
}

void PlacementTrials::end(std::uint64_t call, PlacementAhead& ahead) noexcept {
  on_ = false;
  Placement best = trial_.usual;
  bool clear = false;
  if (const std::optional<double> gain = trial_.gain_of_far()) {
    best = *gain > kClearly ? Placement::far : Placement::near;
    clear = differs(*gain, kClearly);
    if (best != trial_.usual && differs(*gain, kBeyondDoubt)) all_moved_to(best);
  }
  Uses& uses = uses_[static_cast<std::size_t>(trial_.of_class)];
  const bool stays = clear && best == trial_.usual;
  uses.interval = stays ? std::min(2 * uses.interval, kSeldom) : kOften;
  uses.due = uses.interval;
  uses.calls = 0;
  uses.drift = {};
  say(best, call, ahead);
}

}  // namespace coll

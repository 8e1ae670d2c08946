// SPDX-License-Identifier: Apache-2.0
#include "communicator/placement_trials.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace coll {

std::size_t PlacementTrials::Samples::count() const noexcept {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

double PlacementTrials::Samples::median() noexcept {
  double least = std::numeric_limits<double>::max();
  for (std::size_t turn = 0; turn < counts.size(); ++turn) {
    if (counts[turn] == 0) continue;
    const auto begin = seconds[turn].begin();
    const auto middle = begin + static_cast<std::ptrdiff_t>(counts[turn] / 2);
    std::nth_element(begin, middle, begin + static_cast<std::ptrdiff_t>(counts[turn]));
    least = std::min(least, static_cast<double>(*middle));
  }
  return least;
}

std::optional<double> PlacementTrials::Tried::gain_of_far(std::size_t least) noexcept {
  auto& [near, far] = of;
  if (near.count() < least || far.count() < least) return std::nullopt;
  return near.median() / far.median();
}

Placement PlacementTrials::said_of(int of_class) const noexcept {
  return (said_.far & bit(of_class)) != 0 ? Placement::far : Placement::near;
}

void PlacementTrials::take(int of_class, Placement placement) noexcept {
  said_.far = placement == Placement::far ? said_.far | bit(of_class) : said_.far & ~bit(of_class);
}

// What is said of it so far was said of other calls, until something is said again.
void PlacementTrials::begin_anew(int of_class, unsigned pass) noexcept {
  uses_of(of_class) = {.pass = pass};
  take(of_class, moved_to_);
  trial_.taking_part &= ~bit(of_class);
}

// With it, who is due soon.
void PlacementTrials::begin(int of_class, std::uint64_t call, PlacementAhead& ahead) noexcept {
  if (!ahead.free(call)) return;
  trial_ = {.of_class = of_class,
            .first = !uses_of(of_class).tried,
            .taking_part = bit(of_class),
            .usual = said_.far};
  for (int other = 0; other < kPlacementClasses; ++other) {
    const Uses& uses = uses_of(other);
    const bool soon = !uses.tried || 2 * uses.calls >= uses.due;
    if (uses.calls > 0 && soon) trial_.taking_part |= bit(other);
  }
  on_ = true;
  watched_ = {};
  say_turn(call, ahead);
}

void PlacementTrials::say_turn(std::uint64_t call, PlacementAhead& ahead) noexcept {
  const std::uint64_t all = trial_.taking_part;
  const std::uint64_t now = turn_is_usual() ? trial_.usual : ~trial_.usual;
  said_.far = (said_.far & ~all) | (now & all);
  said_.timed = all;
  for (int of_class = 0; of_class < kPlacementClasses; ++of_class) {
    Tried& one = tried(of_class);
    one.samples = 0;
    one.cold = cold_calls(of_class);
  }
  trial_.asked = {};
  trial_.from = ahead.say(said_, call);
  trial_.until = trial_.from + kManyCalls + tried(trial_.of_class).cold;
}

void PlacementTrials::go_on(int of_class, std::uint64_t plan, std::uint64_t call, std::size_t bytes,
                            PlacementAhead& ahead, const CallTimes& times) noexcept {
  learn(call, times);
  const Tried& most = tried(trial_.of_class);
  const bool enough = (most.samples >= kSamples && most.cold == 0) || call > trial_.until;
  if ((enough || hopeless()) && ahead.free(call)) {
    trial_.turn = enough ? trial_.turn + 1 : kTurns;
    if (decided()) {
      end(call, ahead);
      return;
    }
    say_turn(call, ahead);
  }
  if (said_of(of_class) == Placement::near) ++uses_of(of_class).calls;
  Tried& one = tried(of_class);
  if (call < trial_.from || (trial_.taking_part & bit(of_class)) == 0) return;
  if (one.cold > 0) [[unlikely]]
    warm(one, of_class);
  if (!counts(call, bytes)) return;
  if (one.plan == 0) one.plan = plan;
  const bool wanted = one.plan == plan && one.samples < kSamples;
  trial_.asked[call % kTimedCalls] = {wanted ? call : 0, of_class};
}

// Whether calls take as long as they did.
void PlacementTrials::look(std::uint64_t call, const CallTimes& times) noexcept {
  const std::optional<double> seconds = times.of(watched_.call);
  if (seconds) {
    Uses& uses = uses_of(watched_.of_class);
    if (uses.drift.shown_by(watched_.plan, *seconds)) {
      uses.due = std::min(uses.due, std::max(uses.calls, uses.rest));
    }
  }
  if (seconds || call >= watched_.call + kTimedCalls) watched_ = {};
}

// All ranks have left calls before this one, or will soon, and said when.
void PlacementTrials::learn(std::uint64_t call, const CallTimes& times) noexcept {
  for (Asked& asked : trial_.asked) {
    if (asked.call == 0 || asked.call >= call) continue;
    const std::optional<double> seconds = times.of(asked.call);
    if (!seconds) continue;
    asked.call = 0;
    Tried& one = tried(asked.of_class);
    if (one.samples == kSamples) continue;
    Samples& samples = one.of[static_cast<std::size_t>(said_of(asked.of_class))];
    const auto turn = static_cast<std::size_t>(trial_.turn / 2);
    samples.seconds[turn][samples.counts[turn]++] = static_cast<float>(*seconds);
    ++one.samples;
  }
}

bool PlacementTrials::turn_is_usual() const noexcept {
  if (trial_.first) return trial_.turn % 2 == 0;
  return trial_.turn == 0 || trial_.turn == kTurns - 1;
}

// How many near calls come in this turn before those that count: slots have rested as long as calls
// ran as for far cores, and at first all have.
unsigned PlacementTrials::cold_calls(int of_class) const noexcept {
  const Uses& uses = uses_of(of_class);
  const bool was_far = (trial_.usual & bit(of_class)) != 0;
  if (was_far) return trial_.turn == 1 ? uses.pass : 0;
  const bool again = trial_.first && trial_.turn == 2;
  return again ? uses.pass - std::min(uses.pass, uses.calls) : 0;
}

// One of its calls more: what the last of them took as long as slots were cold does not count.
void PlacementTrials::warm(Tried& one, int of_class) noexcept {
  if (--one.cold > 0) return;
  one.of[static_cast<std::size_t>(Placement::near)] = {};
  one.samples = 0;
  for (Asked& asked : trial_.asked) {
    if (asked.of_class == of_class) asked.call = 0;
  }
}

bool PlacementTrials::hopeless() noexcept {
  Tried& one = tried(trial_.of_class);
  if (one.cold == 0) return false;
  const std::optional<double> gain = one.gain_of_far(kSamples);
  return gain && *gain > kHopeless;
}

bool PlacementTrials::decided() noexcept {
  if (trial_.turn == kTurns) return true;
  if (trial_.turn % 2 != 0) return false;
  const std::optional<double> gain = tried(trial_.of_class).gain_of_far(kSamples);
  if (!gain) return false;
  const bool near_was_cold = trial_.first && (trial_.usual & bit(trial_.of_class)) == 0;
  return *gain * kNearBeyondDoubt < 1 || *gain > (near_was_cold ? kHopeless : kBeyondDoubt);
}

// Who has not been asked yet begins with it, too.
void PlacementTrials::all_moved_to(Placement placement) noexcept {
  moved_to_ = placement;
  said_.far = placement == Placement::far ? ~std::uint64_t{0} : 0;
  for (Uses& uses : uses_) uses.due = std::min(uses.due, std::max(uses.calls, kFirst));
}

// One that has taken part in a trial. Few samples have to say it clearly.
void PlacementTrials::judge(int of_class) noexcept {
  const bool was_far = (trial_.usual & bit(of_class)) != 0;
  const Placement usual = was_far ? Placement::far : Placement::near;
  Tried& one = tried(of_class);
  const bool all = one.gain_of_far(kSamples).has_value();
  const std::optional<double> gain = one.gain_of_far(kFewSamples);
  if (!gain && of_class != trial_.of_class) return;
  // Of one whose near calls were cold, beside another one's trial, that says nothing yet.
  const bool cold = !uses_of(of_class).tried && uses_of(of_class).calls < uses_of(of_class).pass;
  if (cold && gain && *gain > 1 && *gain < kHopeless) return;
  const bool beyond_doubt = gain && (*gain > kBeyondDoubt || *gain * kNearBeyondDoubt < 1);
  const bool clear = beyond_doubt || (all && (*gain > kClearly || *gain < 1));
  Placement best = usual;
  if (clear || all) best = *gain > (was_far ? kStill : kClearly) ? Placement::far : Placement::near;
  take(of_class, best);
  Uses& uses = uses_of(of_class);
  uses.interval = clear && best == usual ? std::min(2 * uses.interval, kSeldom) : kOften;
  uses.rest = best == usual ? std::min(2 * uses.rest, kLongRest) : kRest;
  uses.due = uses.interval;
  uses.calls = 0;
  uses.tried = true;
  uses.drift = {};
}

void PlacementTrials::end(std::uint64_t call, PlacementAhead& ahead) noexcept {
  on_ = false;
  const std::uint64_t all = trial_.taking_part;
  said_ = {.far = (said_.far & ~all) | (trial_.usual & all), .timed = 0};
  if (const std::optional<double> gain = tried(trial_.of_class).gain_of_far(kSamples)) {
    const bool was_far = said_of(trial_.of_class) == Placement::far;
    if (!was_far && *gain > kBeyondDoubt) all_moved_to(Placement::far);
    if (was_far && *gain * kNearBeyondDoubt < 1) all_moved_to(Placement::near);
  }
  for (int of_class = 0; of_class < kPlacementClasses; ++of_class) {
    if ((all & bit(of_class)) != 0) judge(of_class);
  }
  ahead.say(said_, call);
}

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
#include "select/refiner.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace coll {
namespace {

constexpr std::uint64_t kFirstCalls = 16;  // calls of a class before any is timed
constexpr int kSkippedCalls = 2;           // calls of a turn: plans are made, caches filled
constexpr double kHopeless = 1.25;         // times what the rule takes: no second turn
constexpr double kClearly = 0.95;          // of what the rule takes, in both turns,
constexpr double kStill = 0.97;            // and once more
constexpr std::size_t kMostClasses = 30;   // with rivals: so many lines can be announced

// Others that run meanwhile, and ranks that come late, make calls longer, never shorter.
double lower_quartile(std::vector<double>& samples) noexcept {
  const auto at = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 4);
  std::ranges::nth_element(samples, at);
  return *at;
}

}  // namespace

bool Refiner::refines(Kind kind) noexcept {
  return kind == Kind::allreduce || kind == Kind::reduce_scatter || kind == Kind::allgather ||
         kind == Kind::alltoall;
}

std::size_t Refiner::place_of(Kind kind, std::size_t bytes) noexcept {
  const auto size = std::min<std::size_t>(std::bit_width(bytes), kSizes - 1);
  return static_cast<std::size_t>(kind) * kSizes + size;
}

bool Refiner::wants(Kind kind, std::size_t bytes) const noexcept {
  return !stopped_ && bytes > 0 && refines(kind) && !classes_[place_of(kind, bytes)].settled;
}

bool Refiner::count(Kind kind, std::size_t bytes) noexcept {
  if (!wants(kind, bytes)) return false;
  Class& c = classes_[place_of(kind, bytes)];
  if (++c.calls <= kFirstCalls) return false;
  if (!std::exchange(c.open, true) && open_++ == 0) news_ = true;
  return true;
}

void Refiner::note(Kind kind, std::size_t bytes, double seconds) {
  if (!wants(kind, bytes)) return;
  if (spent_ > budget_) return stop();
  Class& c = classes_[place_of(kind, bytes)];
  if (c.running != 0) {
    spent_ += std::max(0.0, seconds - c.field.front().taken[0]);
    if (spent_ > budget_) return stop();
  }
  if (c.running != c.wanted || ++c.skipped <= kSkippedCalls) return;
  c.samples.push_back(seconds);
  if (c.samples.size() < kSamples) return;
  if (c.field.empty()) enter_rivals(c, kind, bytes);
  judge(c);
}

void Refiner::enter_rivals(Class& c, Kind kind, std::size_t bytes) {
  c.field.emplace_back();
  if (++entered_ > kMostClasses) return;
  for (const TunedLine& line : rivals_(kind, bytes)) c.field.push_back({.line = line});
}

// The rival that ran has had its turn.
void Refiner::judge(Class& c) {
  const double taken = lower_quartile(c.samples);
  c.samples.clear();
  c.skipped = 0;
  const Rival& rule = c.field.front();
  if (c.turn == kTurns) {
    // Machines change: who has won proves it once more.
    return settle(c, taken < kStill * std::min(rule.taken[0], rule.taken[1]) ? c.running : 0);
  }
  const auto turn = static_cast<std::size_t>(c.turn);
  Rival& ran = c.field[c.running];
  ran.taken[turn] = taken;
  ran.out = taken > kHopeless * rule.taken[turn];
  if (c.field.size() == 1) return settle(c, 0);
  go_on(c);
}

// To the next that has a turn; after the last turn the fastest has one more.
void Refiner::go_on(Class& c) {
  std::size_t next = c.running + 1;
  while (next < c.field.size() && c.field[next].out) ++next;
  if (next == c.field.size()) {
    next = ++c.turn < kTurns ? 0 : winner(c);
    if (c.turn == kTurns && next == 0) return settle(c, 0);
  }
  c.wanted = next;
  news_ = news_ || c.wanted != c.announced;
}

// The fastest of those that were clearly faster than the rule in all turns; 0: none was.
std::size_t Refiner::winner(const Class& c) noexcept {
  const Rival& rule = c.field.front();
  const auto sum = [](const Rival& one) { return one.taken[0] + one.taken[1]; };
  std::size_t best = 0;
  for (std::size_t i = 1; i < c.field.size(); ++i) {
    const Rival& r = c.field[i];
    const bool faster =
        !r.out && r.taken[0] < kClearly * rule.taken[0] && r.taken[1] < kClearly * rule.taken[1];
    if (faster && (best == 0 || sum(r) < sum(c.field[best]))) best = i;
  }
  return best;
}

void Refiner::settle(Class& c, std::size_t chosen) {
  c.wanted = chosen;
  c.settled = true;
  c.samples = {};
  if (std::exchange(c.open, false)) --open_;
  news_ = news_ || c.wanted != c.announced || open_ == 0;
}

// What has not had both turns stays with the rule.
void Refiner::stop() {
  stopped_ = true;
  for (Class& c : classes_) {
    if (!c.settled) settle(c, 0);
  }
}

std::vector<TunedLine> Refiner::lines() {
  std::vector<TunedLine> made;
  for (int kind = 0; kind < kKinds; ++kind) {
    for (int size = 1; size < kSizes; ++size) {
      const auto place = [&](int s) {
        return static_cast<std::size_t>(kind) * kSizes + static_cast<std::size_t>(s);
      };
      Class& c = classes_[place(size)];
      c.announced = c.wanted;
      const bool ends = c.wanted == 0 && classes_[place(size - 1)].announced != 0;
      if (c.wanted == 0 && !ends) continue;
      for (const Placement placement : {Placement::near, Placement::far}) {
        TunedLine line = ends ? TunedLine{.kind = static_cast<Kind>(kind)} : c.field[c.wanted].line;
        line.placement = placement;
        line.from = std::size_t{1} << (size - 1);
        made.push_back(line);
      }
    }
  }
  news_ = false;
  return made;
}

void Refiner::begins() noexcept {
  for (Class& c : classes_) {
    if (c.running == c.announced) continue;
    c.running = c.announced;
    c.skipped = 0;
    c.samples.clear();
  }
}

void Refiner::withdrawn() noexcept {
  news_ = false;
  for (Class& c : classes_) {
    c.announced = 0;
    news_ = news_ || c.wanted != 0;
  }
  begins();
}

void Refiner::allow(double budget) {
  budget_ = budget;
  if (spent_ >= budget_) return stop();
  if (!std::exchange(stopped_, false)) return;
  for (Class& c : classes_) c.settled = !c.field.empty();
}

}  // namespace coll

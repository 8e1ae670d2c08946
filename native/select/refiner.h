// SPDX-License-Identifier: Apache-2.0
// The rules of the library, refined while a program runs: how long its own calls take with one plan
// and another decides, within a budget. A value that knows neither clock nor ranks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "schedule/schedule.h"
#include "select/tuned.h"

namespace coll {

// What might be faster than the rule for such calls; the most promising first.
using Rivals = std::function<std::vector<TunedLine>(Kind kind, std::size_t bytes)>;

class Refiner {
 public:
  // `budget`: seconds that rivals which turn out slower, and finding them, may cost in all.
  Refiner(double budget, Rivals rivals) : budget_(budget), rivals_(std::move(rivals)) {}

  // Whether calls of a kind are refined at all: where every rank waits for every other one, what
  // one of them takes tells how long a call is.
  static bool refines(Kind kind) noexcept;

  // Whether such calls are still refined.
  bool wants(Kind kind, std::size_t bytes) const noexcept;
  // There was such a call. Whether its time is of interest.
  bool count(Kind kind, std::size_t bytes) noexcept;
  // It took so long under what lines() returned last before begins(), or by rule.
  void note(Kind kind, std::size_t bytes, double seconds);
  // Seconds that something else has cost.
  void charge(double seconds) noexcept { spent_ += seconds; }

  // Whether lines(), or timed(), would be others than those in force.
  bool news() const noexcept { return news_; }
  // Whether calls are to be timed.
  bool timed() const noexcept { return open_ > 0; }
  // What shall be in force next.
  std::vector<TunedLine> lines();
  // What lines() returned last is in force from the next call on.
  void begins() noexcept;
  // The rules are in force again; what lines() returned last is not, and will not be.
  void withdrawn() noexcept;
  // Another budget, of which what has been spent is a part; 0: what is not found by now stays with
  // the rules.
  void allow(double budget);

  double spent() const noexcept { return spent_; }
  // Whether its budget is spent and what it found in force.
  bool over() const noexcept { return stopped_ && !news_; }

 private:
  static constexpr int kSizes = 64, kTurns = 2, kSamples = 8;

  struct Rival {
    TunedLine line;  // of the rule: none
    std::array<double, kTurns> taken{};
    bool out = false;
  };
  // Calls of one kind whose vectors have as many bits in their lengths.
  struct Class {
    std::vector<Rival> field;  // the rule first
    std::size_t wanted = 0, announced = 0, running = 0;
    int turn = 0;  // kTurns: the fastest proves it once more
    std::uint64_t calls = 0;
    int skipped = 0;
    std::vector<double> samples;
    bool open = false, settled = false;
  };

  static std::size_t place_of(Kind kind, std::size_t bytes) noexcept;
  void enter_rivals(Class& c, Kind kind, std::size_t bytes);
  void judge(Class& c);
  void go_on(Class& c);
  static std::size_t winner(const Class& c) noexcept;
  void settle(Class& c, std::size_t chosen);
  void stop();

  double budget_, spent_ = 0;
  Rivals rivals_;
  std::vector<Class> classes_ = std::vector<Class>(static_cast<std::size_t>(kKinds) * kSizes);
  std::size_t entered_ = 0;  // classes that were given rivals
  std::size_t open_ = 0;     // classes whose calls are of interest
  bool news_ = false, stopped_ = false;
};

}  // namespace coll

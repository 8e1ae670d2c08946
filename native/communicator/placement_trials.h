// SPDX-License-Identifier: Apache-2.0
// Rank 0's choice of what to say ahead (placement_ahead.h): now and then it has all ranks time the
// calls of a class, as for near and as for far cores in turns, and keeps what was faster. Whatever
// class comes between is tried with it, as in a race of many plans, or in a program that makes
// calls of many kinds. Between trials one call in a few is timed; where these take another time
// than before, a trial is due. Where a trial shows beyond doubt that the cores have moved, this
// holds for all classes, until trials of their own, which are due then, say otherwise.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/placement.h"
#include "communicator/call_times.h"
#include "communicator/drift.h"
#include "communicator/placement_ahead.h"

namespace coll {

class PlacementTrials {
 public:
  // Whether all ranks time a call, of those for which it is said ahead, in any case: one in
  // sixteen, of long ones, beside which a look at the clock is nothing, one in four. By chance,
  // since a program may make calls of some kinds in turns.
  static constexpr bool watches(std::uint64_t call, std::size_t bytes) noexcept {
    return mixed(call) >> (bytes < kLong ? 60 : 62) == 0;
  }
  // And whether they time it in a trial: of short ones one in three, since to tell times makes the
  // next calls slower, those of one way more than those of the other.
  static constexpr bool counts(std::uint64_t call, std::size_t bytes) noexcept {
    return bytes >= kLong || (mixed(call) >> 32) % 3 == 0;
  }

  // The number stands for other calls from now on. After `pass` of them, as for near cores, slots
  // that were cold are written again: what near calls take until then says little.
  void begin_anew(int of_class, unsigned pass) noexcept;
  // Before call number `call`, one of the class. `plan` tells apart calls of a class whose times
  // say nothing of each other; `bytes` of its vector.
  void before(int of_class, std::uint64_t plan, std::uint64_t call, std::size_t bytes,
              PlacementAhead& ahead, const CallTimes& times) noexcept {
    if (on_) [[unlikely]] {
      go_on(of_class, plan, call, bytes, ahead, times);
      return;
    }
    if (watched_.call != 0) [[unlikely]]
      look(call, times);
    if (watches(call, bytes)) [[unlikely]]
      watched_ = {.call = call, .plan = plan, .of_class = of_class};
    Uses& uses = uses_[static_cast<std::size_t>(of_class)];
    if (++uses.calls >= uses.due) [[unlikely]]
      begin(of_class, call, ahead);
  }

 private:
  static constexpr std::uint64_t mixed(std::uint64_t call) noexcept {
    return call * 0x9E3779B97F4A7C15ULL;
  }
  // How many calls of a class go by before its first trial, and between two of it, of which each
  // takes about a hundred.
  static constexpr unsigned kFirst = 16, kOften = 1024, kSeldom = 4096;
  static constexpr std::size_t kLong = 32 << 10;
  // The least calls between trials, however it looks; twice as many after each that changed
  // nothing.
  static constexpr unsigned kRest = 16, kLongRest = 1024;
  // The usual way, the other one twice, and the usual one again, so that what becomes faster from
  // call to call favours neither; in the first trial of a class in turns. A turn ends without its
  // samples after many calls.
  static constexpr int kTurns = 4;
  static constexpr std::size_t kSamples = 8, kFewSamples = 4;
  static constexpr std::uint64_t kManyCalls = 512;
  // So many times as fast as near calls are those as for far cores where it is clear, where they
  // stay what is run, and beyond doubt; and so many times as fast are near ones beyond doubt. To
  // tell times, and slots that have rested, cost near calls up to a third, and what far cores need
  // is twice as fast there.
  static constexpr double kClearly = 1.4, kStill = 1.2, kBeyondDoubt = 1.6, kNearBeyondDoubt = 1.3;
  // So many times as long as far ones near calls take with cold slots where cores are far.
  static constexpr double kHopeless = 2.2;

  struct Uses {
    unsigned calls = 0, due = kFirst, interval = kOften, rest = kRest;
    unsigned pass = 0;
    bool tried = false;
    Drift drift = {};
  };
  // A call that all ranks time, and have not all left yet.
  struct Watched {
    std::uint64_t call = 0, plan = 0;  // 0: there is none
    int of_class = 0;
  };
  // Of one placement, turn by turn.
  struct Samples {
    std::array<std::array<float, kSamples>, kTurns / 2> seconds{};
    std::array<std::size_t, kTurns / 2> counts{};
    std::size_t count() const noexcept;
    // Of the turn that went faster: whatever its first calls find cold, as slots that were not used
    // before, the second turn finds warm.
    double median() noexcept;
  };
  // A class in a trial, by the calls of one plan.
  struct Tried {
    std::uint64_t plan = 0;   // 0: none has come
    std::size_t samples = 0;  // of the turn
    unsigned cold = 0;        // calls of the turn that are left until slots are warm
    std::array<Samples, kPlacements> of{};
    // How many times as fast calls are where they run as for far cores, if there are so many
    // samples of both.
    std::optional<double> gain_of_far(std::size_t least) noexcept;
  };
  struct Asked {
    std::uint64_t call = 0;  // 0: none
    int of_class = 0;
  };
  // For the sake of one class, with others.
  struct Trial {
    int of_class = 0;
    bool first = false;                        // of that class
    std::uint64_t taking_part = 0, usual = 0;  // bits of classes; and what was said of them: far
    int turn = 0;
    std::uint64_t from = 0, until = 0;  // the calls in which the turn holds
    std::array<Tried, kPlacementClasses> tried{};
    std::array<Asked, kTimedCalls> asked{};  // calls that count
  };

  void begin(int of_class, std::uint64_t call, PlacementAhead& ahead) noexcept;
  void go_on(int of_class, std::uint64_t plan, std::uint64_t call, std::size_t bytes,
             PlacementAhead& ahead, const CallTimes& times) noexcept;
  void say_turn(std::uint64_t call, PlacementAhead& ahead) noexcept;
  void look(std::uint64_t call, const CallTimes& times) noexcept;
  void learn(std::uint64_t call, const CallTimes& times) noexcept;
  bool turn_is_usual() const noexcept;
  unsigned cold_calls(int of_class) const noexcept;
  void warm(Tried& one, int of_class) noexcept;
  bool hopeless() noexcept;
  bool decided() noexcept;
  void end(std::uint64_t call, PlacementAhead& ahead) noexcept;
  void judge(int of_class) noexcept;
  void all_moved_to(Placement placement) noexcept;
  void take(int of_class, Placement placement) noexcept;
  Placement said_of(int of_class) const noexcept;
  static constexpr std::uint64_t bit(int of_class) noexcept { return std::uint64_t{1} << of_class; }
  Uses& uses_of(int of_class) noexcept { return uses_[static_cast<std::size_t>(of_class)]; }
  const Uses& uses_of(int of_class) const noexcept {
    return uses_[static_cast<std::size_t>(of_class)];
  }
  Tried& tried(int of_class) noexcept { return trial_.tried[static_cast<std::size_t>(of_class)]; }

  PlacementsSaid said_;
  Placement moved_to_ = Placement::near;  // where the cores were when it was last beyond doubt
  std::array<Uses, kPlacementClasses> uses_{};
  Watched watched_;
  bool on_ = false;
  Trial trial_;
};

}  // namespace coll

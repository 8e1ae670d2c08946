// SPDX-License-Identifier: Apache-2.0
// Where the cores are, as rank 0 says it some calls before: all ranks take it in the same call, and
// what was faster of late is what it says.
#include "communicator/placement_ahead.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "algorithms/algorithm.h"
#include "collectives_trace.h"
#include "communicator/call_times.h"
#include "communicator/drift.h"
#include "communicator/placement_classes.h"
#include "communicator/placement_trials.h"
#include "groups_of_test.h"
#include "instrumented.h"
#include "select/choose.h"
#include "transport/memory.h"

namespace {

using namespace coll;
using namespace std::chrono_literals;
using namespace coll::testing;

// Memory of two ranks of which nobody else knows.
class Laid {
 public:
  Laid()
      : memory_(Segment::bytes(kShape) / kLine + 1),
        segment_(Segment::create(memory_.data(), kShape, 7)) {}
  const Segment& segment() const { return segment_; }

 private:
  struct alignas(kLine) Line {
    std::byte bytes[kLine];
  };
  static constexpr SegmentShape kShape{
      .ranks = 2, .depth = 4, .inline_bytes = 4096, .slot_bytes = 4096, .mail_bytes = kPage};
  std::vector<Line> memory_;
  Segment segment_;
};

TEST(what_is_said_holds_from_a_call_on) {
  const Laid laid;
  PlacementAhead ahead(laid.segment());
  CHECK(ahead.of(1).far == 0 && ahead.free(1));
  const std::uint64_t from = ahead.say({.far = 5, .timed = 2}, 1);
  CHECK(from == 1 + kAhead && !ahead.free(from) && ahead.free(from + kAhead));
  CHECK(ahead.of(from - 1).far == 0 && ahead.of(from - 1).timed == 0);
  CHECK(ahead.of(from).far == 5 && ahead.of(from).timed == 2);
  const std::uint64_t next = ahead.say({.far = 4}, 100);
  CHECK(ahead.of(next - 1).far == 5 && ahead.of(next).far == 4 && ahead.of(next).timed == 0);
}

Choices pair_of(int near, int far) {
  Choices choices;
  choices.near.algorithm = near;
  choices.far.algorithm = far;
  return choices;
}

TEST(every_kind_length_and_pair_of_plans_has_a_class) {
  PlacementClasses classes;
  std::set<int> numbers;
  for (int kind = 0; kind < kKinds; ++kind) {
    for (std::size_t bytes = 1; bytes <= 256 << 10; bytes *= 2) {
      numbers.insert(classes.of(static_cast<Kind>(kind), bytes, {}).number);
    }
  }
  CHECK(numbers.size() == 5 * kKinds && *numbers.rbegin() == 5 * kKinds - 1);
  const PlacementClass one = classes.of(Kind::allreduce, 9000, pair_of(1, 2));
  const PlacementClass other = classes.of(Kind::allreduce, 9000, pair_of(2, 1));
  CHECK(one.number == 5 * kKinds && other.number == one.number + 1 && one.fresh && other.fresh);
  const PlacementClass again = classes.of(Kind::allreduce, 10'000, pair_of(1, 2));
  CHECK(again.number == one.number && !again.fresh);
}

// One pair more than there are bits has that of the first, whose calls are another class then.
TEST(pairs_beyond_the_bits_take_those_of_the_first) {
  PlacementClasses classes;
  std::vector<Prepared> calls(kPlacementClasses + 1);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    calls[i].call.kind = Kind::broadcast;
    calls[i].placed_bytes = 20'000;
    calls[i].choices = pair_of(static_cast<int>(i), 0);
  }
  for (int i = 0; i < kPlacementClasses; ++i) {
    const PlacementClass found = classes.of(calls[static_cast<std::size_t>(i)]);
    CHECK(found.number == i && found.fresh);
  }
  CHECK(!classes.of(calls[0]).fresh);
  const PlacementClass last = classes.of(calls.back());
  CHECK(last.number == 0 && last.fresh && !classes.of(calls.back()).fresh);
  const PlacementClass first = classes.of(calls[0]);
  CHECK(first.number == 1 && first.fresh);
  CHECK(classes.of(calls[2]).number == 2 && classes.of(calls.back()).number == 0);
}

// One of rank 0's calls, of which `took` says how long each takes on the slowest rank: as for near
// or for far cores. Returns whether it ran as for far ones.
bool call_as_far(PlacementTrials& trials, const Segment& segment, std::uint64_t call,
                 const std::function<std::uint64_t(bool far)>& took, int of_class) {
  PlacementAhead ahead(segment);
  const bool watched = PlacementTrials::watches(call, 10'000);
  trials.before(of_class, 77, call, 10'000, ahead, CallTimes(segment, 0));
  const PlacementsSaid said = ahead.of(call);
  const bool far = (said.far >> of_class & 1) != 0;
  const bool tried = (said.timed >> of_class & 1) != 0 && PlacementTrials::counts(call, 10'000);
  if (!tried && !watched) return far;
  for (int rank = 0; rank < 2; ++rank) {
    TimesRing::Times& told = segment.rank(rank).times.of_call[call % kTimedCalls];
    told.entered.store(1000);
    told.left.store(1000 + took(far) / (rank == 0 ? 2 : 1));
    told.call.store(call);
  }
  return far;
}

// Such calls of one class: how many ran as for far cores.
int calls_as_far(PlacementTrials& trials, const Segment& segment, std::uint64_t& call, int calls,
                 const std::function<std::uint64_t(bool far)>& took, int of_class = 9) {
  int far_ones = 0;
  for (int i = 0; i < calls; ++i) {
    far_ones += call_as_far(trials, segment, ++call, took, of_class) ? 1 : 0;
  }
  return far_ones;
}

TEST(what_was_faster_of_late_is_said) {
  const Laid laid;
  PlacementTrials trials;
  std::uint64_t call = 0;
  const auto far_pays = [](bool far) -> std::uint64_t { return far ? 1000 : 2000; };
  const auto near_pays = [](bool far) -> std::uint64_t { return far ? 2000 : 1000; };
  const auto same = [](bool) -> std::uint64_t { return 1000; };
  calls_as_far(trials, laid.segment(), call, 200, far_pays);
  CHECK(calls_as_far(trials, laid.segment(), call, 10'000, far_pays) > 9'800);
  calls_as_far(trials, laid.segment(), call, 5'000, near_pays);
  CHECK(calls_as_far(trials, laid.segment(), call, 10'000, near_pays) < 300);
  // Of two that are alike it is the one for near cores.
  calls_as_far(trials, laid.segment(), call, 5'000, same);
  CHECK(calls_as_far(trials, laid.segment(), call, 10'000, same) < 600);
}

// Whatever is said for thousands of calls, as nothing has changed, gives way soon after it has.
TEST(what_changes_is_seen_before_a_trial_would_be_due) {
  const Laid laid;
  PlacementTrials trials;
  std::uint64_t call = 0;
  const auto far_pays = [](bool far) -> std::uint64_t { return far ? 1000 : 2000; };
  const auto near_pays = [](bool far) -> std::uint64_t { return far ? 3000 : 1000; };
  calls_as_far(trials, laid.segment(), call, 30'000, far_pays);
  calls_as_far(trials, laid.segment(), call, 800, near_pays);
  CHECK(calls_as_far(trials, laid.segment(), call, 1000, near_pays) < 100);
  calls_as_far(trials, laid.segment(), call, 30'000, near_pays);
  calls_as_far(trials, laid.segment(), call, 800, far_pays);
  CHECK(calls_as_far(trials, laid.segment(), call, 1000, far_pays) > 850);
}

// A machine moves its cores for all: who was asked before is asked again, after it has begun anew.
TEST(what_holds_beyond_doubt_holds_for_all_classes) {
  const Laid laid;
  PlacementTrials trials;
  std::uint64_t call = 0;
  const auto far_pays = [](bool far) -> std::uint64_t { return far ? 1000 : 2000; };
  const auto near_pays = [](bool far) -> std::uint64_t { return far ? 3000 : 1000; };
  for (const int of_class : {9, 10, 11}) {
    calls_as_far(trials, laid.segment(), call, 5000, near_pays, of_class);
  }
  calls_as_far(trials, laid.segment(), call, 800, far_pays, 9);
  CHECK(calls_as_far(trials, laid.segment(), call, 200, far_pays, 10) > 150);
  CHECK(calls_as_far(trials, laid.segment(), call, 200, near_pays, 11) < 60);
}

// As in a race of plans, or in a program that makes calls of several kinds.
TEST(classes_that_take_turns_are_tried_together) {
  const Laid laid;
  PlacementTrials trials;
  std::uint64_t call = 0;
  std::vector<int> far(6);
  for (int round = 0; round < 200; ++round) {
    for (int of_class = 0; of_class < 6; ++of_class) {
      const bool far_pays = of_class % 2 == 0;
      const auto took = [&](bool as_far) -> std::uint64_t {
        return as_far == far_pays ? 1000 : 1500 + 100 * of_class;
      };
      for (int i = 0; i < 3; ++i) {
        const bool ran = call_as_far(trials, laid.segment(), ++call, took, of_class);
        far[static_cast<std::size_t>(of_class)] += round >= 40 && ran ? 1 : 0;
      }
    }
  }
  for (int of_class = 0; of_class < 6; ++of_class) {
    const int right = of_class % 2 == 0 ? far[of_class] : 480 - far[of_class];
    CHECK(right > 400);
  }
}

TEST(of_calls_that_are_watched_no_class_has_none) {
  for (const std::size_t bytes : {std::size_t{10'000}, std::size_t{100'000}}) {
    for (std::uint64_t turns = 1; turns <= 20; ++turns) {
      for (std::uint64_t of_class = 0; of_class < turns; ++of_class) {
        int watched = 0;
        for (std::uint64_t i = 0; i < 200; ++i) {
          watched += PlacementTrials::watches(i * turns + of_class, bytes) ? 1 : 0;
        }
        CHECK(watched >= (bytes < 32'768 ? 4 : 30) && watched <= (bytes < 32'768 ? 24 : 70));
      }
    }
  }
}

// Where calls take now longer and now less for other reasons, trials become seldom.
TEST(what_trials_do_not_change_is_seldom_tried) {
  const Laid laid;
  PlacementTrials trials;
  std::uint64_t call = 0;
  int far = 0;
  for (int turn = 0; turn < 400; ++turn) {
    const std::uint64_t slow = turn % 2 == 0 ? 1 : 2;
    const auto near_pays = [&](bool as_far) { return slow * (as_far ? 2000 : 1000); };
    far += calls_as_far(trials, laid.segment(), call, 150, near_pays);
  }
  CHECK(far < 60'000 / 25);
}

TEST(a_number_that_is_given_again_is_tried_again) {
  const Laid laid;
  PlacementTrials trials;
  std::uint64_t call = 0;
  const auto far_pays = [](bool as_far) -> std::uint64_t { return as_far ? 1000 : 1500; };
  const auto near_pays = [](bool as_far) -> std::uint64_t { return as_far ? 1100 : 1000; };
  calls_as_far(trials, laid.segment(), call, 5000, far_pays, 4);
  CHECK(calls_as_far(trials, laid.segment(), call, 100, near_pays, 4) == 100);
  trials.begin_anew(4, 0);
  calls_as_far(trials, laid.segment(), call, 200, near_pays, 4);
  CHECK(calls_as_far(trials, laid.segment(), call, 500, near_pays, 4) == 0);
}

// Near calls use slots that nobody has written lately: the first pass of them takes longer.
TEST(near_calls_are_judged_by_slots_that_are_warm) {
  const Laid laid;
  PlacementTrials trials;
  constexpr unsigned kPass = 150;
  std::uint64_t call = 0;
  unsigned warm = 0, far_ones = 0;  // near calls since there were many far ones in a row
  const auto near_pays = [&](bool as_far) -> std::uint64_t {
    return as_far ? 1300 : warm > kPass ? 1000 : 1700;
  };
  const auto far_pays = [](bool as_far) -> std::uint64_t { return as_far ? 1000 : 2500; };
  const auto as_far = [&](int calls, const std::function<std::uint64_t(bool)>& took) {
    int all = 0;
    for (int i = 0; i < calls; ++i) {
      const bool far = call_as_far(trials, laid.segment(), ++call, took, 9);
      far_ones = far ? far_ones + 1 : 0;
      warm = far_ones > 100 ? 0 : warm + (far ? 0 : 1);
      all += far ? 1 : 0;
    }
    return all;
  };
  trials.begin_anew(9, kPass);
  CHECK(as_far(10'000, near_pays) < 400);
  as_far(5'000, far_pays);
  // Where they have not moved a trial ends at the first cold calls.
  CHECK(as_far(10'000, far_pays) > 9'800);
  as_far(6'000, near_pays);
  CHECK(as_far(10'000, near_pays) < 400);
}

TEST(a_drift_is_of_one_plan_and_of_most_calls) {
  Drift drift;
  const auto shown = [&](std::uint64_t plan, const std::vector<double>& times) {
    bool any = false;
    for (const double t : times) any = drift.shown_by(plan, t) || any;
    return any;
  };
  CHECK(!shown(1, {3, 1, 2, 9}) && !shown(1, {1.2, 5, 5, 5}) && !shown(1, {1, 1, 0.8, 1}));
  CHECK(!shown(2, {9, 9, 9, 9}) && !shown(2, {9, 8, 9, 10}));
  CHECK(!shown(1, {1, 1, 1, 1}) && shown(1, {1.5, 1.4, 2, 1.6}));
  CHECK(!shown(3, {10, 10, 10}) && !shown(3, {10}) && shown(3, {9, 9, 7, 9}));
}

// Then nobody says how long calls take, and none is waited for.
TEST(calls_without_times_end_a_trial) {
  const Laid laid;
  PlacementAhead ahead(laid.segment());
  const CallTimes times(laid.segment(), 0);
  PlacementTrials trials;
  int timed = 0;
  for (std::uint64_t call = 1; call <= 3000; ++call) {
    trials.before(3, 77, call, 10'000, ahead, times);
    timed += ahead.of(call).timed != 0 ? 1 : 0;
  }
  CHECK(timed > 1900 && timed < 2300 && ahead.of(3000).far == 0);
}

coll_choice broadcast_by(const char* name, bool far) {
  return {.size = sizeof(coll_choice),
          .kind = COLL_BROADCAST,
          .far = far ? 1 : 0,
          .algorithm = find_algorithm(Kind::broadcast, name),
          .mode = COLL_MODE_STAGED,
          .lag = 1,
          .from = 8 << 10,
          .tile_bytes = 8192};
}

// Calls of which one rank only sends, many in a row, so that it runs ahead: short ones and those
// for which it is said ahead go through rings of their own. Each tells which algorithm it ran.
std::vector<int> ran(coll_comm* comm, unsigned seed) {
  const coll_choice ways[] = {broadcast_by("linear", false), broadcast_by("chain", true)};
  ok(coll_tune(comm, ways, 2));
  std::mt19937 turn(seed);
  std::vector<float> x(2 << 10);
  std::vector<int> algorithms;
  int root = 0;
  for (int i = 0; i < 900; ++i) {
    if (turn() % 12 == 0) root = 1 - root;
    const std::size_t n = i % 2 == 0 ? 3 : x.size();
    if (coll_rank(comm) == 0 && i % 7 == 0) std::this_thread::sleep_for(20us);
    x.assign(x.size(), coll_rank(comm) == root ? static_cast<float>(i) : -1.0F);
    ok(coll_broadcast(comm, x.data(), x.data(), n, COLL_FLOAT32, root));
    CHECK(x[0] == static_cast<float>(i) && x[n - 1] == static_cast<float>(i));
    coll_last_call last{};
    last.size = sizeof last;
    ok(coll_last(comm, &last));
    algorithms.push_back(last.algorithm);
  }
  return algorithms;
}

TEST(all_ranks_take_it_in_the_same_call) {
  const int chain = find_algorithm(Kind::broadcast, "chain");
  coll_options options = options_of(0, 2);
  options.slot_bytes = 0;
  std::ptrdiff_t far = 0;
  for (unsigned seed = 0; seed < (check::kInstrumented ? 10 : 40); ++seed) {
    std::vector<coll_comm*> comms(2);
    ok(coll_local(&options, comms.data()));
    std::vector<std::vector<int>> seen(2);
    run_ranks(2, [&](int rank) {
      const Comm comm(comms[static_cast<std::size_t>(rank)]);
      seen[static_cast<std::size_t>(rank)] = ran(comm.get(), seed);
    });
    CHECK(seen[0] == seen[1]);
    far += std::ranges::count(seen[0], chain);
  }
  CHECK(far > 200);
}

}  // namespace

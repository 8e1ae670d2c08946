// SPDX-License-Identifier: Apache-2.0
// Refining the rules by the times of a program's own calls: what is found, what it may cost, and
// which plans are tried at all.
#include "select/refiner.h"

#include <algorithm>
#include <random>
#include <vector>

#include "algorithms/algorithm.h"
#include "check.h"
#include "select/choose.h"
#include "select/rivals.h"
#include "topology/machine_costs.h"

using namespace coll;

namespace {

constexpr std::size_t kBytes = 1000;  // of the class from 512 on

std::vector<TunedLine> three(Kind kind, std::size_t) {
  const int algorithm = find_algorithm(kind, kind == Kind::alltoall ? "linear" : "circulant");
  std::vector<TunedLine> lines;
  for (const int lag : {0, 1, 2}) {
    lines.push_back({.kind = kind, .algorithm = algorithm, .lag = lag});
  }
  return lines;
}

// A group whose calls take `seconds(lag)`, -1 where the rule runs; announcements hold `delay` calls
// after they are made.
struct Group {
  Refiner refiner;
  std::vector<double> seconds;  // by lag + 1
  double noise = 0;
  std::vector<TunedLine> now = {}, next = {};
  int until = -1;
  std::mt19937 random = std::mt19937(1);

  int lag(Kind kind = Kind::allreduce, std::size_t bytes = kBytes) const {
    const Tuned tuned(3, false, 3, now);
    const TunedLine* line = tuned.find(kind, bytes, Placement::near);
    return line == nullptr ? -1 : line->lag;
  }
  void calls(int count, Kind kind = Kind::allreduce, std::size_t bytes = kBytes) {
    for (int i = 0; i < count; ++i) {
      if (until == 0) {
        now = next;
        refiner.begins();
      }
      --until;
      if (until < -8 && refiner.news()) {
        next = refiner.lines();
        until = 8;
      }
      std::exponential_distribution<double> more(1.0);
      const double took = seconds[static_cast<std::size_t>(lag(kind, bytes) + 1)];
      if (refiner.count(kind, bytes)) refiner.note(kind, bytes, took * (1 + noise * more(random)));
    }
  }
};

Group group_of(std::vector<double> seconds, double budget = 10, double noise = 0) {
  return {.refiner = Refiner(budget, three), .seconds = std::move(seconds), .noise = noise};
}

}  // namespace

TEST(the_fastest_stays) {
  for (const double noise : {0.0, 0.1, 0.2}) {
    Group group = group_of({10e-6, 9e-6, 7e-6, 12e-6}, 10, noise);
    group.calls(1000);
    CHECK(group.lag() == 1);
    CHECK(!group.refiner.wants(Kind::allreduce, kBytes));
    CHECK(group.refiner.wants(Kind::allreduce, 2 * kBytes));
  }
}

TEST(the_rule_stays_where_nothing_is_clearly_faster) {
  Group group = group_of({10e-6, 9.9e-6, 10e-6, 30e-6});
  group.calls(1000);
  CHECK(group.lag() == -1 && !group.refiner.wants(Kind::allreduce, kBytes));
}

TEST(who_has_won_proves_it_once_more) {
  Group group = group_of({10e-6, 9e-6, 7e-6, 12e-6});
  while (group.lag() != 1 || group.refiner.news()) group.calls(1);
  // It has run twice, and is in force for the third time: from then on it takes longer.
  int times = 0;
  for (int i = 0; i < 2000 && group.refiner.wants(Kind::allreduce, kBytes); ++i) {
    const bool before = group.lag() == 1;
    group.calls(1);
    if (!before && group.lag() == 1 && ++times == 2) group.seconds[2] = 11e-6;
  }
  CHECK(times == 2);
  group.calls(40);
  CHECK(group.lag() == -1);
}

TEST(lines_are_for_their_class_only) {
  Group group = group_of({10e-6, 5e-6, 7e-6, 12e-6});
  group.calls(1000);
  const Tuned tuned(3, false, 3, group.now);
  for (const Placement placement : {Placement::near, Placement::far}) {
    CHECK(tuned.find(Kind::allreduce, 511, placement) == nullptr);
    CHECK(tuned.find(Kind::allreduce, 512, placement)->lag == 0);
    CHECK(tuned.find(Kind::allreduce, 1023, placement)->lag == 0);
    CHECK(tuned.find(Kind::allreduce, 1024, placement) == nullptr);
    CHECK(tuned.find(Kind::allgather, 600, placement) == nullptr);
  }
}

TEST(a_budget_is_kept) {
  Group group = group_of({10e-6, 1e-3, 1e-3, 1e-3}, 5e-3);
  group.calls(2000);
  CHECK(group.lag() == -1);
  // The budget, and the calls until all know that it is spent.
  CHECK(group.refiner.spent() < 5e-3 + 2e-3);
  CHECK(group.refiner.over() && !group.refiner.wants(Kind::allreduce, 2 * kBytes));
  group.refiner.allow(1);
  CHECK(group.refiner.wants(Kind::allreduce, 2 * kBytes));
  CHECK(!group.refiner.wants(Kind::allreduce, kBytes));  // that one is decided
}

TEST(what_the_search_costs_counts) {
  Group group = group_of({10e-6, 1e-6, 1e-6, 1e-6}, 1e-3);
  group.refiner.charge(2e-3);
  group.calls(500);
  CHECK(group.lag() == -1 && group.refiner.over());
}

TEST(a_table_that_comes_between_withdraws_it) {
  Group group = group_of({10e-6, 5e-6, 7e-6, 12e-6});
  group.calls(1000);
  CHECK(group.lag() == 0 && !group.refiner.news());
  group.now.clear();
  group.refiner.withdrawn();
  CHECK(group.refiner.news());
  group.calls(30);
  CHECK(group.lag() == 0);
}

TEST(only_where_all_wait_for_all) {
  for (const Kind kind : {Kind::broadcast, Kind::reduce, Kind::gather, Kind::scatter, Kind::barrier,
                          Kind::scan, Kind::exscan}) {
    CHECK(!Refiner(1, three).wants(kind, 8));
  }
  CHECK(!Refiner(1, three).wants(Kind::allreduce, 0));
}

TEST(announcements_have_room_for_all_classes) {
  std::vector<TunedLine> most;
  Group group = group_of({10e-6, 5e-6, 7e-6, 12e-6});
  for (const Kind kind : {Kind::allreduce, Kind::reduce_scatter, Kind::allgather, Kind::alltoall}) {
    // Every other class, so that each has an end of its own.
    for (int size = 3; size < 40; size += 2) {
      group.calls(400, kind, std::size_t{1} << size);
    }
  }
  CHECK(group.next.size() > 60 && group.next.size() <= 128);
  (void)Tuned(3, false, 3, group.next);
}

TEST(rivals_are_legal_and_few) {
  for (const int p : {2, 3, 5, 8}) {
    for (const Kind kind :
         {Kind::allreduce, Kind::reduce_scatter, Kind::allgather, Kind::alltoall}) {
      for (const std::size_t bytes : {std::size_t{8}, std::size_t{4000}, std::size_t{4096},
                                      std::size_t{100000}, std::size_t{1} << 22}) {
        const auto found = rivals_of_rule(kind, p, bytes, 3, usual_costs());
        CHECK(found.size() <= 4);
        const Choice rule = choose(kind, p, bytes).near;
        for (const TunedLine& line : found) {
          (void)Tuned(p, false, 3, {line});
          CHECK(line.kind == kind && (line.mode == Mode::inlined) == (bytes < 4096));
          CHECK(line.algorithm != rule.algorithm || line.mode != rule.mode ||
                line.lag != rule.lag || line.tile_bytes != rule.tile_bytes);
        }
      }
    }
  }
  CHECK(rivals_of_rule(Kind::allreduce, 1, 8, 3, usual_costs()).empty());
  CHECK(rivals_of_rule(Kind::allreduce, 17, 8, 3, usual_costs()).empty());
  CHECK(!rivals_of_rule(Kind::allreduce, 4, 1 << 16, 3, usual_costs()).empty());
}

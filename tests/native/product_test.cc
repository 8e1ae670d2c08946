// SPDX-License-Identifier: Apache-2.0
// Hierarchical schedules, over many shapes of hosts: proved in and out of place, for every root and
// phase; what passes between hosts is the lower bound; their plans are proved; mutants are
// rejected.
#include "algorithms/product.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "check.h"
#include "communicator/claims_of.h"
#include "instrumented.h"
#include "loose.h"
#include "plan/lower.h"
#include "prove/plan_proof.h"
#include "prove/schedule_proof.h"

using namespace coll;

namespace {

using Phases = std::vector<LevelPhase>;

const std::vector<Kind> kOfTeams = {Kind::allreduce, Kind::reduce_scatter, Kind::allgather};
const std::vector<Kind> kOfLeaders = {Kind::broadcast, Kind::reduce, Kind::barrier};

// Hosts of so many ranks each, one after the other.
Levels hosts(const std::vector<int>& ranks) {
  std::vector<int> host;
  for (std::size_t h = 0; h < ranks.size(); ++h) {
    host.insert(host.end(), static_cast<std::size_t>(ranks[h]), static_cast<int>(h));
  }
  return {static_cast<int>(host.size()), {host}};
}

// Groups drawn by lot: those of a grouping are merged at random to those of the next.
Levels drawn(int p, int groupings, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::vector<int>> all;
  std::vector<int> group(static_cast<std::size_t>(p));
  int count = p;
  for (int rank = 0; rank < p; ++rank) group[static_cast<std::size_t>(rank)] = rank;
  for (int g = 0; g < groupings; ++g) {
    const int fewer = std::max(1, count * 2 / 5);
    std::vector<int> above;
    for (int i = 0; i < count; ++i) above.push_back(static_cast<int>(random() % unsigned(fewer)));
    for (int& number : group) number = above[static_cast<std::size_t>(number)];
    all.push_back(group);
    count = fewer;
  }
  return {p, all};
}

struct Case {
  std::string name;
  Levels levels;
};

std::vector<Case> cases() {
  std::vector<Case> list = {
      {"one rank", {1, {}}},
      {"one rank, three levels", {1, {{0}, {0}}}},
      {"5, flat", {5, {}}},
      {"single host", hosts({4})},
      {"one rank a host", hosts({1, 1, 1, 1, 1})},
      {"2x2", Levels::grid({2, 2})},
      {"2x4", Levels::grid({2, 4})},
      {"4x2", Levels::grid({4, 2})},
      {"3x3", Levels::grid({3, 3})},
      {"2x2x2", Levels::grid({2, 2, 2})},
      {"4x4", Levels::grid({4, 4})},
      {"2x3x2", Levels::grid({2, 3, 2})},
      {"2x1x3", Levels::grid({2, 1, 3})},
      {"3+1", hosts({3, 1})},
      {"1+3", hosts({1, 3})},
      {"3+2", hosts({3, 2})},
      {"4+2+1", hosts({4, 2, 1})},
      {"4+2+2", hosts({4, 2, 2})},
      {"1+1+5", hosts({1, 1, 5})},
      {"5+7+8", hosts({5, 7, 8})},
      {"2x2, ranks in turns", {4, {{0, 1, 0, 1}}}},
      {"3+1, ranks apart", {4, {{7, 2, 7, 7}}}},
      {"4+2+1, ranks apart", {7, {{0, 1, 0, 2, 0, 1, 0}}}},
      {"sockets of 2+1 and 1", {4, {{0, 0, 1, 2}, {0, 0, 0, 1}}}},
      {"two racks, ranks apart", {8, {{0, 1, 2, 3, 0, 1, 2, 3}, {0, 1, 0, 1, 0, 1, 0, 1}}}},
      {"8x8", Levels::grid({8, 8})},
  };
  for (unsigned seed = 0; seed < (check::kShort ? 2 : 12); ++seed) {
    const int p = 3 + static_cast<int>(seed * seed * 37 % 62);
    const int groupings = 1 + static_cast<int>(seed % 3);
    list.push_back({"drawn, seed " + std::to_string(seed), drawn(p, groupings, seed)});
  }
  return list;
}

bool halving_fits(const Levels& levels, int level) {
  for (int g = 0; g < levels.groups(level); ++g) {
    const auto size = levels.members(level, g).size();
    if ((size & (size - 1)) != 0) return false;
  }
  return true;
}

// Every combination of phases, or, not to take all day, the same at all levels.
std::vector<Phases> combinations(Kind kind, const Levels& levels, bool all) {
  const bool teams = std::count(kOfTeams.begin(), kOfTeams.end(), kind) > 0;
  const Phases known = teams ? Phases{LevelPhase::ring, LevelPhase::circulant, LevelPhase::direct,
                                      LevelPhase::halving}
                             : Phases{LevelPhase::direct, LevelPhase::binomial};
  std::vector<Phases> found = {{}};
  for (int level = 0; level < levels.depth(); ++level) {
    std::vector<Phases> longer;
    for (const Phases& phases : found) {
      for (const LevelPhase phase : known) {
        if (phase == LevelPhase::halving && !halving_fits(levels, level)) continue;
        if (!all && !phases.empty() && phase != phases.front()) continue;
        longer.push_back(phases);
        longer.back().push_back(phase);
      }
    }
    found = longer;
  }
  return found;
}

void expect_proved(const Report& report, const std::string& what) {
  if (!report.proved) check::fail(what + ": " + report.message);
}

// Calls f(name, levels, phases, schedule) for every case of at most so many ranks; of at most so
// many with all combinations of phases.
template <class F>
void each_schedule(const std::vector<Kind>& kinds, int most_ranks, int most_combined, F&& f) {
  for (const auto& [name, levels] : cases()) {
    if (levels.p() > most_ranks) continue;
    for (const Kind kind : kinds) {
      const bool rooted = kind == Kind::broadcast || kind == Kind::reduce;
      const bool all = levels.p() <= most_combined;
      for (const Phases& phases : combinations(kind, levels, all)) {
        for (int root = 0; root < (rooted ? levels.p() : 1); ++root) {
          f(name + ", kind " + std::to_string(static_cast<int>(kind)) + ", root " +
                std::to_string(root),
            levels, phases, product(kind, levels, root, phases));
        }
      }
    }
  }
}

void prove_all(const std::vector<Kind>& kinds) {
  int proofs = 0;
  each_schedule(kinds, 64, check::kShort ? 4 : 9,
                [&](const std::string& name, const Levels& levels, const Phases& phases,
                    const Schedule& schedule) {
                  const Kind kind = schedule.kind;
                  const Claims claims = claims_of(kind, product_cost(kind, levels, phases));
                  for (const bool in_place : {false, true}) {
                    expect_proved(prove(schedule, in_place, claims), name);
                    ++proofs;
                  }
                });
  std::printf("%d proofs\n", proofs);
  CHECK(proofs > 200);
}

TEST(schedules_of_teams_are_proved) { prove_all(kOfTeams); }

TEST(schedules_of_leaders_are_proved) { prove_all(kOfLeaders); }

TEST(plans_are_proved) {
  int proofs = 0;
  const auto prove_plan = [&](const std::string& name, const Levels&, const Phases&,
                              const Schedule& schedule) {
    const Plan plan = lower(schedule, {.mode = Mode::staged, .depth = 4, .lag = proofs % 2});
    const auto tiles = usual_tiles(plan);
    for (const bool in_place : {false, true}) {
      expect_proved(prove(plan, in_place, tiles), name);
      ++proofs;
    }
  };
  each_schedule(kOfTeams, 8, check::kShort ? 3 : 5, prove_plan);
  each_schedule(kOfLeaders, check::kShort ? 3 : 7, 5, prove_plan);
  std::printf("%d proofs\n", proofs);
  CHECK(proofs > 100);
}

// Ranks of a host, and those of all.
int size_of(const Levels& levels, int host) {
  int size = 0;
  for (int r = 0; r < levels.p(); ++r) size += levels.group(levels.top() - 1, r) == host ? 1 : 0;
  return size;
}

TEST(what_passes_between_hosts_is_the_least) {
  int looked = 0;
  const auto look = [&](const std::string& name, const Levels& levels, const Phases&,
                        const Schedule& s) {
    const std::vector<Crossing> crossing = cells_between(s, levels, levels.top());
    const auto h = static_cast<long>(crossing.size());
    for (long host = 0; host < h; ++host) {
      const auto [sent, received] = crossing[static_cast<std::size_t>(host)];
      const long all = s.chunks, p = s.p, k = size_of(levels, static_cast<int>(host));
      const bool roots = levels.group(levels.top() - 1, s.root) == host;
      const bool least = s.kind == Kind::allreduce
                             ? sent * h == 2 * (h - 1) * all && sent == received
                         : s.kind == Kind::reduce_scatter ? sent * p == (p - k) * all
                         : s.kind == Kind::allgather      ? received * p == (p - k) * all
                         : s.kind == Kind::broadcast      ? received == (roots ? 0 : all)
                                                          : sent == (roots ? 0 : all);
      if (!least) {
        check::fail(name + ": host " + std::to_string(host) + " of " + std::to_string(h) +
                    " sends " + std::to_string(sent) + " and receives " + std::to_string(received) +
                    " of " + std::to_string(all) + " cells");
      }
      ++looked;
    }
  };
  each_schedule(kOfTeams, 64, 4, look);
  each_schedule({Kind::broadcast, Kind::reduce}, 16, 4, look);
  CHECK(looked > 500);
}

TEST(all_ranks_of_a_host_use_the_wire_alike) {
  for (const auto& members : {std::vector{2, 2}, {2, 4}, {4, 2}, {3, 3}, {4, 4}, {2, 3, 2}}) {
    const Levels levels = Levels::grid(members);
    const Phases phases(members.size(), LevelPhase::circulant);
    for (const Kind kind : kOfTeams) {
      const Schedule s = product(kind, levels, 0, phases);
      const long of_host = cells_between(s, levels, levels.top()).front().sent;
      for (int rank = 0; rank < s.p; ++rank) {
        long sent = 0;
        const Program& program = s.programs[static_cast<std::size_t>(rank)];
        for (const Step& step : program.steps) {
          if (step.op != Op::send) continue;
          for (const int peer : program.peers(step)) {
            const int top = levels.top() - 1;
            if (levels.group(top, peer) != levels.group(top, rank)) {
              sent += cells_of(program.source(step));
            }
          }
        }
        CHECK(sent * size_of(levels, 0) == of_host);
      }
    }
  }
}

TEST(the_counter_sees_more_than_the_least) {
  // All levels as one: the ring passes a border with whole vectors, direct with more.
  const Levels levels = Levels::grid({4, 2});
  const auto sent = [&](LevelPhase phase) {
    const Schedule flat = product(Kind::allreduce, Levels(8, {}), 0, Phases{phase});
    return static_cast<double>(cells_between(flat, levels, 1).front().sent) / flat.chunks;
  };
  CHECK(sent(LevelPhase::ring) == 1.75);
  CHECK(sent(LevelPhase::direct) == 4.0);
  const Schedule s =
      product(Kind::allreduce, levels, 0, Phases{LevelPhase::direct, LevelPhase::ring});
  CHECK(cells_between(s, levels, 1).front().sent == s.chunks);
}

TEST(far_levels_first) {
  for (const auto& members : {std::vector{2, 2}, {2, 4}, {2, 3, 2}, {4, 1, 2}}) {
    const Levels near = Levels::grid(members), far = near.far_first();
    const Phases phases(members.size(), LevelPhase::ring);
    for (const Kind kind : kOfTeams) {
      const Schedule s = product(kind, far, 0, phases);
      const Claims claims = claims_of(kind, product_cost(kind, far, phases));
      for (const bool in_place : {false, true}) {
        expect_proved(prove(s, in_place, claims), "far first");
      }
    }
    // Whole vectors go between hosts, from each of their ranks.
    const Schedule s = product(Kind::allreduce, far, 0, phases);
    const long h = members.back(), k = near.p() / h;
    CHECK(cells_between(s, near, near.top()).front().sent * h == 2 * (h - 1) * k * s.chunks);
  }
  const Error refused = thrown<Error>([] { (void)hosts({3, 1}).far_first(); });
  CHECK(refused.status == Status::unsupported);
}

TEST(levels_know_who_is_where) {
  const Levels levels(7, {{5, 3, 5, 9, 5, 3, 5}});  // hosts of ranks 0 2 4 6, 1 5 and 3
  CHECK(levels.depth() == 2 && levels.groups(0) == 3 && levels.groups(1) == 1);
  CHECK(levels.members(0, 1) == std::vector{1, 5});
  CHECK(levels.group(0, 5) == 1 && levels.place(0, 5) == 1 && levels.place(1, 5) == 1);
  CHECK(levels.widest(0) == 4 && levels.widest(1) == 3 && !levels.even());
  CHECK(Levels::grid({2, 3}).even());
}

TEST(what_cannot_be_is_refused) {
  const Levels levels = hosts({3, 1});
  const auto refusal = [&](Kind kind, int root, const Phases& phases) {
    return std::string(thrown<Error>([&] { (void)product(kind, levels, root, phases); }).what());
  };
  const auto says = [](const std::string& text, const char* part) {
    if (text.find(part) == std::string::npos) check::fail(text + " does not say " + part);
  };
  const Phases two(2, LevelPhase::direct);
  says(refusal(Kind::gather, 0, two), "no hierarchical form");
  says(refusal(Kind::allreduce, 0, {LevelPhase::ring}), "1 phases are given for 2 levels");
  says(refusal(Kind::allreduce, 4, two), "root 4 is not a rank of 4");
  says(refusal(Kind::allreduce, 0, {LevelPhase::halving, LevelPhase::ring}), "halving at level 0");
  says(refusal(Kind::allreduce, 0, {LevelPhase::binomial, LevelPhase::ring}), "does not suit");
  says(refusal(Kind::reduce, 0, {LevelPhase::direct, LevelPhase::ring}), "ring at level 1");
  says(refusal(Kind::reduce, 0, {LevelPhase{9}, LevelPhase::direct}), "no phase number 9");
  says(thrown<Error>([] { Levels(0, {}); }).what(), "no rank");
  says(thrown<Error>([] { Levels(3, {{0, 1}}); }).what(), "of 2 ranks, not of all 3");
  says(thrown<Error>([] { Levels(3, {{0, 0, 1}, {0, 1, 1}}); }).what(), "parts rank 1");
  says(thrown<Error>([] { Levels(1, std::vector(16, std::vector{0})); }).what(), "at most 15");
  says(thrown<Error>([&] {
         (void)cells_between(product(Kind::barrier, levels, 0, two), Levels(3, {}), 0);
       }).what(),
       "for 3 ranks");
}

// Rejected in one placing at least, or no mutant at all.
bool rejected(const loose::Schedule& mutant) {
  const Schedule s = mutant.tight();
  return !prove(s, false, {}).proved || !prove(s, true, {}).proved;
}

std::vector<Schedule> victims() {
  const Phases phases = {LevelPhase::ring, LevelPhase::direct};
  std::vector<Schedule> list;
  for (const Levels& levels : {hosts({3, 1}), Levels::grid({2, 2}), hosts({1, 2, 2})}) {
    for (const Kind kind : kOfTeams) list.push_back(product(kind, levels, 0, phases));
  }
  return list;
}

TEST(wrong_lists_of_blocks_are_rejected) {
  int mutants = 0;
  for (const Schedule& victim : victims()) {
    const loose::Schedule whole(victim);
    const Layout layout(victim);
    for (std::size_t rank = 0; rank < whole.ranks.size(); ++rank) {
      for (std::size_t i = 0; i < whole.ranks[rank].size(); ++i) {
        loose::Schedule fewer = whole;
        fewer.ranks[rank].erase(fewer.ranks[rank].begin() + static_cast<std::ptrdiff_t>(i));
        CHECK(rejected(fewer));
        for (std::size_t r = 0; r < whole.ranks[rank][i].source.size(); ++r) {
          loose::Schedule other = whole;
          CellRange& range = other.ranks[rank][i].source[r];
          const int cells = layout.cells(static_cast<int>(rank), range.buffer);
          if (range.cells == cells) continue;
          range.first = (range.first + 1) % (cells - range.cells + 1);
          CHECK(rejected(other));
          ++mutants;
        }
      }
    }
  }
  CHECK(mutants > 100);
}

TEST(swapped_levels_and_ranks_are_rejected) {
  for (const Schedule& victim : victims()) {
    loose::Schedule swapped(victim), exchanged(victim);
    int last = 0;
    for (const auto& steps : swapped.ranks) last = std::max(last, steps.back().round);
    for (auto& steps : swapped.ranks) {  // the second half of the levels before the first
      for (loose::Step& step : steps) step.round = (step.round + (last + 1) / 2) % (last + 1);
      std::stable_sort(steps.begin(), steps.end(), [](const loose::Step& a, const loose::Step& b) {
        return a.round < b.round;
      });
    }
    CHECK(rejected(swapped));
    std::swap(exchanged.ranks.front(), exchanged.ranks.back());
    CHECK(rejected(exchanged));
  }
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// Every algorithm over TCP: random calls, one after another on the same connections, ranks taking
// turns at random. Elements are integers, so every one is compared.
#include <numeric>
#include <string>

#include "instrumented.h"
#include "select/wished.h"
#include "wire_of_test.h"

namespace {

using namespace coll;
using namespace coll::testing;

std::size_t random_count(std::minstd_rand& random, int p) {
  switch (random() % 6) {
    case 0:
      return random() % 3;
    case 1:
      return static_cast<std::size_t>(p) - 1 + random() % 3;
    case 2:
      return 1000 + random() % 5000;
    default:
      return random() % 300;
  }
}

// Unequal parts, by rank; none half of the time, and where there can be none.
std::vector<std::size_t> random_counts(std::minstd_rand& random, const Layout& layout,
                                       std::size_t most) {
  std::vector<std::size_t> counts;
  if (!layout.owned() || random() % 2 == 0) return counts;
  for (int r = 0; r < layout.p; ++r)
    counts.push_back(random() % 3 == 0 ? 0 : random() % (most + 1));
  return counts;
}

void run_random_call(WireTeam& team, const Algorithm& algorithm, std::uint64_t number,
                     std::minstd_rand& random) {
  const int p = team.size();
  const int root = static_cast<int>(random() % static_cast<unsigned>(p));
  const Schedule schedule =
      make_schedule(algorithm, p, Layout(algorithm.kind, p, 0, 1).rooted() ? root : 0);
  const Layout layout(schedule);
  std::size_t count = random_count(random, p);
  const auto counts = random_counts(random, layout, count);
  if (layout.owned()) count *= static_cast<std::size_t>(p);
  if (layout.kind == Kind::alltoall) count *= static_cast<std::size_t>(p * p);
  if (layout.kind == Kind::barrier) count = 0;
  if (!counts.empty()) count = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  const WireCase c{.schedule = schedule,
                   .count = count,
                   .counts = counts.empty() ? nullptr : counts.data(),
                   .in_place = random() % 2 == 0,
                   .tile_bytes = random() % 3 == 0 ? 0 : 4 * (1 + random() % 400),
                   .how = {.depth = 1 + static_cast<int>(random() % 3),
                           .lag = static_cast<int>(random() % 3),
                           .pace = static_cast<int>(random() % 3)}};
  WireRun run(c, static_cast<unsigned>(random()));
  run.begin(team, {.number = number, .fingerprint = number * 77});
  const std::string what = std::string(algorithm.name) + " p " + std::to_string(p) + " root " +
                           std::to_string(schedule.root) + " count " + std::to_string(count) +
                           (c.in_place ? " in place" : "") + " tile " +
                           std::to_string(c.tile_bytes) + " depth " + std::to_string(c.how.depth) +
                           " lag " + std::to_string(c.how.lag) + " pace " +
                           std::to_string(c.how.pace);
  if (!team.finish(random)) check::fail("never finished: " + what);
  if (run.wrong() > 0) check::fail(std::to_string(run.wrong()) + " wrong: " + what);
}

TEST(every_algorithm_is_right_over_tcp) {
  std::minstd_rand random(11);
  for (const int p : {1, 2, 3, 4, 5, 7, 8}) {
    WireTeam team(p);
    std::uint64_t number = 0;
    for (int round = 0; round < 6; ++round) {
      for (const Algorithm* a : algorithms()) {
        if (a->fits(p)) run_random_call(team, *a, ++number, random);
      }
    }
  }
}

TEST(ranks_of_one_machine_talk_through_memory) {
  std::minstd_rand random(13);
  for (const auto& [p, per_host] : {std::pair{4, 4}, {4, 2}, {6, 4}}) {
    WireTeam team(p, {}, per_host);
    std::uint64_t number = 0;
    for (const Algorithm* a : algorithms()) {
      if (a->fits(p)) run_random_call(team, *a, ++number, random);
    }
  }
}

// How many messages rank 0 has posted to each of the others, where only rank 1 has answered.
std::vector<std::uint64_t> posted_ahead(int pace) {
  constexpr int kTiles = 8;
  const Schedule schedule =
      make_schedule(algorithm_at(find_algorithm(Kind::allgather, "direct")), 3, 0);
  WireTeam team(3);
  WireRun run({.schedule = schedule,
               .count = std::size_t{3} * kTiles,
               .counts = nullptr,
               .in_place = false,
               .tile_bytes = sizeof(std::int32_t),
               .how = {.pace = pace}},
              1);
  run.begin(team, {.number = 1, .fingerprint = 1});
  WireExecutor& one = *team.ranks[0];
  WireExecutor& other = *team.ranks[1];
  for (int turn = 0; turn < 200; ++turn) {
    one.advance();
    other.advance();
    one.stream(1)->progress();
    one.stream(2)->progress();
    other.stream(0)->progress();
    ::usleep(10);
  }
  return {one.stream(1)->posted(), one.stream(2)->posted()};
}

TEST(who_keeps_pace_is_only_so_far_ahead_of_the_slowest) {
  CHECK(posted_ahead(0) == (std::vector<std::uint64_t>{8, 8}));
  CHECK(posted_ahead(1) == (std::vector<std::uint64_t>{1, 1}));
  CHECK(posted_ahead(3) == (std::vector<std::uint64_t>{3, 3}));
}

TEST(small_buffers_of_the_kernel_are_enough) {
  std::minstd_rand random(12);
  TcpOptions options;
  options.send_buffer = options.receive_buffer = 4096;
  for (const int p : {2, 4, 5}) {
    WireTeam team(p, options);
    std::uint64_t number = 0;
    for (const Algorithm* a : algorithms()) {
      if (a->fits(p)) run_random_call(team, *a, ++number, random);
    }
  }
}

}  // namespace

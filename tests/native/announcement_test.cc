// SPDX-License-Identifier: Apache-2.0
// Choices that rank 0 announces while the ranks go on: all take them in the same call, whatever
// they call and however far ahead some are; and what refining announces leaves results right.
#include <bit>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "check.h"
#include "collectives.h"
#include "transport/usable_cores.h"

using namespace coll;

namespace {

constexpr int kCalls = 1500;

std::vector<coll_comm*> threads(int p) {
  coll_options options{};
  options.size = sizeof options;
  options.ranks = p;
  options.timeout = 60;
  std::vector<coll_comm*> comms(static_cast<std::size_t>(p));
  CHECK(coll_local(&options, comms.data()) == COLL_OK);
  return comms;
}

coll_choice choice_of(Kind kind, const char* name, int lag, std::uint64_t from = 0) {
  return {.size = sizeof(coll_choice),
          .kind = static_cast<std::int32_t>(kind),
          .far = 0,
          .algorithm = find_algorithm(kind, name),
          .mode = COLL_MODE_STAGED,
          .lag = lag,
          .from = from,
          .tile_bytes = 4096};
}

// What an allreduce would run now.
int chosen(coll_comm* comm) {
  coll_choice now{};
  now.size = sizeof now;
  std::int32_t tuned = 0;
  CHECK(coll_chosen(comm, COLL_ALLREDUCE, 800, 0, &now, &tuned) == COLL_OK);
  return 100 * now.algorithm + now.lag;
}

coll_status call(coll_comm* comm, int kind, double* x, double* out, std::size_t n, int root) {
  return coll_collective(comm, kind, x, out, n, COLL_FLOAT64, COLL_SUM, root, -1, COLL_MODE_AUTO,
                         0);
}

// What each element is where every rank hands in its number and 1.
double sum_of(int p) { return p * (p + 1) / 2.0; }

// A call of some kind, the same on all ranks; those of which some ranks only send, or only receive,
// let ranks run ahead. Short ones are of one length: where the flag of one call lies is no payload
// of another, which a rank may never have waited for; the thread sanitizer objects to that.
void some_call(coll_comm* comm, int p, int rank, std::mt19937& turn) {
  const std::size_t n = turn() % 3 == 0 ? 9000 : 5;
  const int root = static_cast<int>(turn() % static_cast<unsigned>(p));
  std::vector<double> x(n, rank + 1.0), out(n * static_cast<std::size_t>(p));
  switch (turn() % 5) {
    case 0:
      CHECK(call(comm, COLL_ALLREDUCE, x.data(), x.data(), n, 0) == COLL_OK);
      CHECK(x.front() == sum_of(p) && x.back() == sum_of(p));
      break;
    case 1:
      CHECK(call(comm, COLL_REDUCE, x.data(), out.data(), n, root) == COLL_OK);
      if (rank == root) CHECK(out[n - 1] == sum_of(p));
      break;
    case 2:
      CHECK(call(comm, COLL_GATHER, x.data(), out.data(), n, root) == COLL_OK);
      if (rank == root) CHECK(out.front() == 1 && out.back() == p);
      break;
    default:
      CHECK(call(comm, COLL_BROADCAST, x.data(), x.data(), n, root) == COLL_OK);
      CHECK(x.front() == root + 1 && x.back() == root + 1);
  }
}

const coll_choice kWays[] = {
    choice_of(Kind::allreduce, "ring", 0),
    choice_of(Kind::allreduce, "ring", 1),
    choice_of(Kind::allreduce, "circulant", 0),
    choice_of(Kind::allreduce, "direct_two_shot", 1),
    choice_of(Kind::allreduce, "binomial_tree", 1),
};

}  // namespace

TEST(all_take_them_in_the_same_call) {
  for (const int p : {2, 3, 5}) {
    const auto comms = threads(p);
    std::vector<std::vector<int>> seen(static_cast<std::size_t>(p));
    run_ranks(p, [&](int rank) {
      coll_comm* comm = comms[static_cast<std::size_t>(rank)];
      std::mt19937 turn(7), own(static_cast<unsigned>(rank));
      for (int i = 0; i < kCalls; ++i) {
        if (rank == 0 && own() % 5 == 0) {
          const coll_choice ways[] = {kWays[own() % std::size(kWays)],
                                      choice_of(Kind::broadcast, "chain", own() % 2 == 0 ? 1 : 0)};
          CHECK(coll_announce(comm, ways, 1 + own() % 2, 0) == COLL_OK);
        }
        some_call(comm, p, rank, turn);
        seen[static_cast<std::size_t>(rank)].push_back(chosen(comm));
      }
    });
    int changes = 0;
    for (std::size_t i = 1; i < kCalls; ++i) changes += seen[0][i] != seen[0][i - 1] ? 1 : 0;
    CHECK(changes > 10);
    for (const auto& other : seen) CHECK(other == seen[0]);
    for (coll_comm* comm : comms) CHECK(coll_close(comm) == COLL_OK);
  }
}

TEST(a_table_of_all_ranks_goes_before_them) {
  const auto comms = threads(3);
  run_ranks(3, [&](int rank) {
    coll_comm* comm = comms[static_cast<std::size_t>(rank)];
    std::mt19937 turn(3);
    const int usual = chosen(comm);
    if (rank == 0) CHECK(coll_announce(comm, kWays, 1, 0) == COLL_OK);
    for (int i = 0; i < 20; ++i) some_call(comm, 3, rank, turn);
    const int announced = chosen(comm);
    CHECK(announced == 100 * kWays[0].algorithm && announced != usual);
    CHECK(coll_tune(comm, &kWays[2], 1) == COLL_OK);
    for (int i = 0; i < 40; ++i) {
      some_call(comm, 3, rank, turn);
      CHECK(chosen(comm) == 100 * kWays[2].algorithm);
    }
    // What was announced comes back some calls later.
    CHECK(coll_tune(comm, nullptr, 0) == COLL_OK);
    CHECK(chosen(comm) == usual);
    for (int i = 0; i < 40; ++i) some_call(comm, 3, rank, turn);
    CHECK(chosen(comm) == announced);
  });
  for (coll_comm* comm : comms) CHECK(coll_close(comm) == COLL_OK);
}

TEST(persistent_calls_take_them_wherever_they_were_prepared) {
  const auto comms = threads(3);
  run_ranks(3, [&](int rank) {
    coll_comm* comm = comms[static_cast<std::size_t>(rank)];
    std::mt19937 turn(5), own(static_cast<unsigned>(rank) + 1);
    std::vector<double> x(5);
    coll_call made{};
    made.size = sizeof made;
    made.kind = COLL_ALLREDUCE;
    made.dtype = COLL_FLOAT64;
    made.op = COLL_SUM;
    made.algorithm = made.mode = -1;
    made.input = made.output = x.data();
    made.count = x.size();
    coll_persistent* persistent = nullptr;
    const int prepared_at = static_cast<int>(own() % 30);
    for (int i = 0; i < 300; ++i) {
      if (i == prepared_at) CHECK(coll_persistent_new(comm, &made, &persistent) == COLL_OK);
      if (rank == 0 && i % 7 == 3) {
        CHECK(coll_announce(comm, &kWays[own() % std::size(kWays)], 1, 0) == COLL_OK);
      }
      some_call(comm, 3, rank, turn);
      if (i < 30) continue;
      x.assign(x.size(), rank + 1.0);
      if (i % 2 == 0) {
        CHECK(coll_run_persistent(persistent) == COLL_OK);
      } else {
        CHECK(coll_start(persistent) == COLL_OK && coll_finish(persistent) == COLL_OK);
      }
      CHECK(x.front() == 6 && x.back() == 6);
    }
    CHECK(coll_persistent_free(persistent) == COLL_OK);
  });
  for (coll_comm* comm : comms) CHECK(coll_close(comm) == COLL_OK);
}

TEST(only_if_the_ranks_have_so_many_cores) {
  const int here = std::popcount(usable_cores());
  for (const int cores : {here, here + 1}) {
    const auto comms = threads(2);
    run_ranks(2, [&](int rank) {
      coll_comm* comm = comms[static_cast<std::size_t>(rank)];
      std::mt19937 turn(9);
      const int usual = chosen(comm);
      if (rank == 0) CHECK(coll_announce(comm, kWays, 1, cores) == COLL_OK);
      for (int i = 0; i < 40; ++i) some_call(comm, 2, rank, turn);
      CHECK(chosen(comm) == (cores == here ? 100 * kWays[0].algorithm : usual));
    });
    for (coll_comm* comm : comms) CHECK(coll_close(comm) == COLL_OK);
  }
}

TEST(who_may_announce_what) {
  const auto comms = threads(2);
  CHECK(coll_announce(comms[1], kWays, 1, 0) == COLL_INVALID_ARGUMENT);
  CHECK(std::string(coll_last_error()).find("by rank 0") != std::string::npos);
  std::vector<coll_choice> many;
  for (std::uint64_t i = 0; i < 257; ++i) many.push_back(choice_of(Kind::allreduce, "ring", 0, i));
  CHECK(coll_announce(comms[0], many.data(), many.size(), 0) == COLL_INVALID_ARGUMENT);
  CHECK(coll_announce(comms[0], many.data(), 128, 0) == COLL_OK);
  CHECK(coll_announce(comms[0], nullptr, 1, 0) == COLL_INVALID_ARGUMENT);
  coll_choice none = choice_of(Kind::allreduce, "ring", 0);
  none.algorithm = 9999;
  CHECK(coll_announce(comms[0], &none, 1, 0) == COLL_INVALID_ARGUMENT);
  CHECK(coll_announce(nullptr, kWays, 1, 0) == COLL_CLOSED);
  CHECK(coll_refine(comms[0], -1, nullptr) == COLL_INVALID_ARGUMENT);
  CHECK(coll_refine(comms[0], std::numeric_limits<double>::quiet_NaN(), nullptr) ==
        COLL_INVALID_ARGUMENT);
  CHECK(coll_refine(comms[1], 1, nullptr) == COLL_OK);
  for (coll_comm* comm : comms) CHECK(coll_close(comm) == COLL_OK);
}

TEST(results_are_right_while_rules_are_refined) {
  for (const int p : {2, 3, 4}) {
    const auto comms = threads(p);
    run_ranks(p, [&](int rank) {
      coll_comm* comm = comms[static_cast<std::size_t>(rank)];
      CHECK(coll_refine(comm, 10, nullptr) == COLL_OK);
      for (int i = 0; i < 600; ++i) {
        const std::size_t n = i % 3 == 0 ? 1 : i % 3 == 1 ? 1000 : 9000;
        std::vector<double> x(n, rank + 1.0);
        CHECK(call(comm, COLL_ALLREDUCE, x.data(), x.data(), n, 0) == COLL_OK);
        CHECK(x.front() == sum_of(p) && x.back() == sum_of(p));
        if (i == 400) CHECK(coll_refine(comm, 0, nullptr) == COLL_OK);
        if (i == 500) CHECK(coll_tune(comm, kWays, 1) == COLL_OK);
      }
    });
    for (coll_comm* comm : comms) CHECK(coll_close(comm) == COLL_OK);
  }
}

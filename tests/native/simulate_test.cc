// SPDX-License-Identifier: Apache-2.0
// Simulated times: closed forms where there are any, published loads of links, symmetry as it is
// declared, and sizes that no machine here has.
#include "simulate/simulate.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "algorithms/algorithm.h"
#include "base/error.h"
#include "check.h"
#include "collectives.h"
#include "topology/network_words.h"

using namespace coll;

namespace {

const Algorithm& algorithm(Kind kind, const char* name) {
  return *algorithms()[static_cast<std::size_t>(find_algorithm(kind, name))];
}

Traffic traffic(const Algorithm& a, int p, Symmetry symmetry, int tiles = 1) {
  return {p, symmetry, [&](int rank) { return make_program(a, p, 0, rank); }, tiles > 1};
}

Simulated simulated(const char* name, int p, const char* words, double bytes, int tiles = 1,
                    Kind kind = Kind::allreduce) {
  const Algorithm& a = algorithm(kind, name);
  const int cells = Layout(kind, p, 0, a.chunks(p)).vector_cells();
  return simulate(traffic(a, p, a.symmetry(p), tiles), *network_of_words(words),
                  {.bytes = bytes, .cells = cells, .tiles = tiles});
}

bool close(double a, double b, double tolerance = 1e-9) {
  return std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

// A rank's messages of a round, by whom they go to from the rank's point of view.
using Seen = std::multiset<std::tuple<int, int, int, int, int>>;

Seen seen(const Traffic& t, int rank, Symmetry symmetry) {
  Seen all;
  for (const Deed& d : t.of(rank)) {
    const bool message = d.act == Act::send || d.act == Act::receive;
    const int away = (d.peer - rank + t.p()) % t.p();
    const bool back = symmetry == Symmetry::mirrored && rank % 2 != 0;
    const int peer = !message                             ? 0
                     : symmetry == Symmetry::exclusive_or ? d.peer ^ rank
                     : back                               ? (t.p() - away) % t.p()
                                                          : away;
    all.emplace(d.round, static_cast<int>(d.act), peer, d.cells, d.operands);
  }
  return all;
}

}  // namespace

TEST(ring_takes_what_its_formula_says) {
  constexpr double kBytes = 1 << 20, kLatency = 2e-6, kOverhead = 1e-6, kRate = 1e9;
  constexpr int kRanks = 8;
  const Simulated found = simulated(
      "ring", kRanks, "torus:8,us=2,gbit=8,overhead_us=1,fold_gbyte=2,copy_gbyte=1000000", kBytes);
  const double chunk = kBytes / kRanks;
  const double round = 2 * kOverhead + kLatency + chunk / kRate;
  CHECK(found.rounds == 14);
  CHECK(found.messages == 14 * kRanks);
  // Seven rounds also fold two operands of a chunk at 2 GB/s each.
  CHECK(close(found.seconds, 14 * round + 7 * chunk / kRate, 1e-6));
  CHECK(close(found.busiest_bytes, 14 * chunk));
}

// In vectors. A ring of p sends 2(p-1)/p over each link; circulant's round at distance h carries
// the h-th part of half a vector over h links, half of those at distance p/2 the other way.
TEST(loads_of_a_ring_of_64) {
  const auto load = [](const char* name) {
    return simulated(name, 64, "torus:64", 1.0).busiest_bytes;
  };
  CHECK(close(load("ring"), 2.0 * 63 / 64));
  double circulant = 2 * 8;
  for (int h = 16; h >= 1; h /= 2) circulant += h * (h / 64.0);
  CHECK(close(load("circulant"), circulant));
  CHECK(load("ring") < load("recursive_halving"));
  CHECK(load("recursive_halving") < load("circulant"));
}

TEST(one_link_carries_one_message_at_a_time) {
  // All send to rank 0: its port takes them one after the other.
  const Simulated found =
      simulated("linear", 9, "hosts:9x1,us=0,gbit=8,overhead_us=0", 9e6, 1, Kind::gather);
  CHECK(close(found.seconds, 8e6 / 1e9, 0.02));
  CHECK(close(found.busiest_bytes, 8e6));
}

TEST(tiles_fold_while_others_travel) {
  const auto seconds = [](int tiles) {
    return simulated("ring", 4, "hosts:4x1,us=0,overhead_us=0,gbit=8,fold_gbyte=2", 8e6, tiles)
        .seconds;
  };
  CHECK(seconds(8) < 0.9 * seconds(1));
  CHECK(seconds(8) >= 1.5 * 8e6 / 1e9);  // 2 (p - 1) / p vectors leave each host
}

TEST(thin_trees_are_slower) {
  const auto seconds = [](const char* words) {
    return simulated("circulant", 64, words, 64e6).seconds;
  };
  CHECK(seconds("fat-tree:8x8,oversubscription=4") > 1.5 * seconds("fat-tree:8x8"));
  CHECK(seconds("fat-tree:4x4x4") > 0);
  CHECK(seconds("dragonfly:8x4x2") > 0);
  CHECK(seconds("torus:4x4x4") > 0);
  CHECK(seconds("rails:8x8") > 0);
}

TEST(symmetry_is_as_declared) {
  for (const Algorithm* a : algorithms()) {
    for (const int p : {2, 3, 4, 5, 7, 8, 12, 16, 31, 32, 33, 64}) {
      if (!a->fits(p) || a->symmetry(p) == Symmetry::none) continue;
      const Traffic all = traffic(*a, p, Symmetry::none);
      const Seen first = seen(all, 0, a->symmetry(p));
      for (int rank = 1; rank < p; ++rank) {
        if (seen(all, rank, a->symmetry(p)) == first) continue;
        check::fail(std::string(a->name) + " at p = " + std::to_string(p) + ", rank " +
                    std::to_string(rank) + " is unlike rank 0");
      }
    }
  }
}

TEST(even_and_odd_ranks_of_a_butterfly_mirror_each_other) {
  for (const char* name : {"swing", "bine"}) {
    for (const Kind kind : {Kind::allreduce, Kind::reduce_scatter, Kind::allgather}) {
      const Algorithm& a = algorithm(kind, name);
      CHECK(a.symmetry(6) == Symmetry::mirrored && a.symmetry(64) == Symmetry::mirrored);
      CHECK(a.symmetry(7) == Symmetry::none);  // its last rank is like no other
    }
  }
}

TEST(one_program_stands_for_all) {
  const auto network = network_of_words("fat-tree:8x4");
  for (const char* name :
       {"ring", "circulant", "recursive_doubling", "direct_two_shot", "swing", "bine"}) {
    const Algorithm& a = algorithm(Kind::allreduce, name);
    const Task task = {.bytes = 1e6, .cells = a.chunks(32)};
    const Simulated one = simulate(traffic(a, 32, a.symmetry(32)), *network, task);
    const Simulated all = simulate(traffic(a, 32, Symmetry::none), *network, task);
    CHECK(one.messages == all.messages && one.rounds == all.rounds);
    CHECK(close(one.seconds, all.seconds, 0.3));  // messages of a round go in another order
    for (std::size_t i = 0; i < one.class_bytes.size(); ++i) {
      CHECK(close(one.class_bytes[i], all.class_bytes[i], 1e-6));
    }
  }
}

TEST(every_algorithm_ends_on_every_shape) {
  for (const char* words : {"node:13", "hosts:13x1", "fat-tree:13x1", "torus:13", "rails:13x1",
                            "node:16", "hosts:4x4", "dragonfly:2x4x2", "torus:4x4"}) {
    const auto network = network_of_words(words);
    const int p = network->ranks();
    for (const Algorithm* a : algorithms()) {
      if (!a->fits(p)) continue;
      for (const int tiles : {1, 3}) {
        const int cells = Layout(a->kind, p, 0, a->chunks(p)).vector_cells();
        const Simulated found = simulate(traffic(*a, p, a->symmetry(p), tiles), *network,
                                         {.bytes = 4096, .cells = cells, .tiles = tiles});
        CHECK(found.seconds > 0 && found.messages > 0);
      }
    }
  }
}

TEST(nobody_waits_for_what_never_comes) {
  const auto lonely = [](int rank) {
    Program program;
    if (rank == 1) {
      program.peer_pool = {0};
      program.steps.push_back({.op = Op::recv, .round = 0, .peers = {0, 1}});
    }
    return program;
  };
  const Traffic t(2, Symmetry::none, lonely);
  const Error error =
      thrown<Error>([&] { simulate(t, *network_of_words("node:2"), {.bytes = 1, .cells = 1}); });
  CHECK(std::string(error.what()).find("rank 1 waits") != std::string::npos);
}

TEST(words_that_say_no_network) {
  for (const char* words : {"",
                            "ring",
                            "node",
                            "node:",
                            "node:0",
                            "node:-1",
                            "node:2x2",
                            "hosts:4",
                            "cube:8",
                            "torus:2x2x2x2x2",
                            "fat-tree:33",
                            "fat-tree:2x2x2x2",
                            "node:2,gbit",
                            "node:2,gbit=",
                            "node:2,gbit=0",
                            "node:2,gbit=nan",
                            "node:2,us=-1",
                            "node:2,us=1,us=1",
                            "fat-tree:1056",
                            "node:2,color=3",
                            "node:2 ",
                            "node:99999999999",
                            "torus:2048x2048",
                            "hosts:4x2,oversubscription=2",
                            "node:2,,us=1"}) {
    const Error error = thrown<Error>([&] { (void)network_of_words(words); });
    CHECK(error.status == Status::invalid_argument);
  }
}

TEST(thousands_of_ranks) {
  const Simulated found = simulated("circulant", 4096, "fat-tree:4096", 1 << 26);
  CHECK(found.rounds == 24);
  CHECK(found.messages == 24 * 4096);
  const Simulated swing = simulated("swing", 4096, "fat-tree:4096", 1 << 26);
  CHECK(swing.rounds == 24);
  CHECK(swing.messages == 24 * 4096);
  const Error error = thrown<Error>([] {
    const Algorithm& a = algorithm(Kind::allgather, "direct");
    traffic(a, 65536, a.symmetry(65536));
  });
  CHECK(error.status == Status::out_of_memory);
}

TEST(a_simulation_refuses_null_pointers) {
  coll_network* network = nullptr;
  CHECK(coll_network_of_words(nullptr, &network) == COLL_INVALID_ARGUMENT);
  coll_rooms rooms = {};
  CHECK(coll_network_of_rooms(&rooms, &network) == COLL_INVALID_ARGUMENT);
  rooms.size = sizeof rooms;
  rooms.p = 2;
  rooms.levels = 1;
  CHECK(coll_network_of_rooms(&rooms, &network) == COLL_INVALID_ARGUMENT);
  CHECK(coll_network_of_words("node:2", &network) == COLL_OK);
  CHECK(coll_network_class(network, 7) == nullptr);
  coll_task task = {};
  coll_simulated out;
  double bytes[1];
  CHECK(coll_simulate(network, &task, &out, bytes, nullptr, 0, nullptr) ==
        COLL_INVALID_ARGUMENT);  // no size
  task.size = sizeof task;
  task.algorithm = -1;
  CHECK(coll_simulate(network, &task, &out, bytes, nullptr, 0, nullptr) ==
        COLL_INVALID_ARGUMENT);  // no schedule
  task.algorithm = 0;
  task.p = 2;
  task.tiles = 1;
  CHECK(coll_simulate(network, &task, nullptr, bytes, nullptr, 0, nullptr) ==
        COLL_INVALID_ARGUMENT);
  CHECK(coll_simulate(network, &task, &out, nullptr, nullptr, 0, nullptr) == COLL_INVALID_ARGUMENT);
  CHECK(coll_simulate(network, &task, &out, bytes, nullptr, 9, nullptr) == COLL_OK);
  coll_network_free(network);
}

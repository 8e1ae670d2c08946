// SPDX-License-Identifier: Apache-2.0
// Predicted times of plans between machines: closed forms where there are any, and what must hold
// of all algorithms.
#include "simulate/wire_time.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "base/error.h"
#include "base/index.h"
#include "check.h"
#include "plan/wire_lower.h"
#include "topology/network_words.h"

using namespace coll;

namespace {

constexpr double kKiB = 1024, kMiB = kKiB * kKiB;

const Algorithm& algorithm(Kind kind, const char* name) {
  return *algorithms()[static_cast<std::size_t>(find_algorithm(kind, name))];
}

bool close(double a, double b, double tolerance = 1e-9) {
  return std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

double wire(Kind kind, const char* name, int p, const Network& network, const WireTask& task,
            const WireLowering& how = {}) {
  const Schedule schedule = make_schedule(algorithm(kind, name), p, 0);
  std::vector<WirePlan> plans;
  for (int rank = 0; rank < p; ++rank) plans.push_back(lower_for_wire(schedule, rank, how));
  return wire_seconds(plans, network, task);
}

double wire(Kind kind, const char* name, int p, const char* words, const WireTask& task,
            const WireLowering& how = {}) {
  return wire(kind, name, p, *network_of_words(words), task, how);
}

// A wire of 1 GB/s without latency or overhead, on which nothing else costs anything.
constexpr const char* kBare4 = "hosts:4x1,us=0,overhead_us=0,gbit=8,fold_gbyte=1e9,copy_gbyte=1e9";

// Ranks of a host each, all on one machine; a message takes 30 us, of which 10 are work at either
// end.
std::unique_ptr<Network> on_cores(int p, int cores, double seconds_per_byte, double work_of_byte) {
  const MeasuredLink link{.latency = 30e-6,
                          .seconds_per_byte = seconds_per_byte,
                          .overhead = {.message = 10e-6, .byte = work_of_byte}};
  std::vector<int> hosts(index(p), 0);
  std::iota(hosts.begin(), hosts.end(), 0);
  auto network = measured_network({hosts}, {"host", "network"}, {{}, link}, {});
  network->cores = {.machine_of = std::vector<int>(index(p), 0), .cores = {cores}};
  return network;
}

}  // namespace

TEST(a_wire_ring_by_hand) {
  constexpr double kBytes = 4e6;
  const double chunk = kBytes / 4;
  const double round = 2 * 1e-6 + 2 * 2e-6 + chunk / 1e9;
  const double found = wire(Kind::allreduce, "ring", 4,
                            "hosts:4x1,us=2,overhead_us=1,gbit=8,fold_gbyte=1e9,copy_gbyte=1e9",
                            {.bytes = kBytes}, {.lag = 0});
  CHECK(close(found, 6 * round, 1e-6));
}

TEST(a_wire_chain_of_k_tiles) {
  // Back to back the root sends one vector after the other: only its own port counts.
  const double found = wire(Kind::broadcast, "chain", 4, kBare4, {.bytes = 8e6, .tile_bytes = 1e5});
  CHECK(close(found, 8e6 / 1e9, 0.02));
  // An allreduce by chains goes up and down: p - 1 tiles each way until it is full.
  const double twice =
      wire(Kind::allreduce, "chain", 4, kBare4, {.bytes = 8e6, .tile_bytes = 1e5}, {.depth = 8});
  CHECK(twice >= 8e6 / 1e9);
  CHECK(twice < wire(Kind::allreduce, "chain", 4, kBare4, {.bytes = 8e6}));
}

TEST(one_port_takes_one_message_after_another) {
  const double found = wire(Kind::gather, "linear", 4, kBare4, {.bytes = 8e6});
  CHECK(close(found, 6e6 / 1e9, 1e-3));
}

TEST(a_root_sends_to_each_of_its_children) {
  const auto of_wire = [](bool apart) {
    return wire(Kind::broadcast, "binomial", 4, kBare4, {.bytes = 8e6, .alone = apart});
  };
  CHECK(close(of_wire(true), 2 * 8e6 / 1e9, 1e-3));
  CHECK(close(of_wire(false), 2 * 8e6 / 1e9, 1e-3));
}

TEST(who_exchanges_with_all_fills_all_ports) {
  const double found = wire(Kind::allgather, "direct", 4, "hosts:4x1,us=0,overhead_us=1,gbit=8",
                            {.bytes = 8e6, .tile_bytes = 1e5, .alone = true}, {.pace = 4});
  CHECK(close(found, 6e6 / 1e9, 0.02));
}

TEST(what_a_bucket_holds_passes_at_once) {
  // Ranks of a host each; a link of 1 GB/s that takes 30 us, of which 10 are work at either end.
  const MeasuredLink shaped{
      .latency = 30e-6, .seconds_per_byte = 1e-9, .overhead = {.message = 10e-6}, .bucket = 1e5};
  const auto network = measured_network({{0, 1, 2}}, {"host", "network"}, {{}, shaped}, {});
  const auto seconds = [&](const char* name, int p, double bytes) {
    return wire(Kind::broadcast, name, p, *network, {.bytes = bytes, .alone = true});
  };
  CHECK(close(seconds("linear", 2, 8), 30e-6));
  CHECK(close(seconds("linear", 2, 1e5), 30e-6));
  CHECK(close(seconds("linear", 2, 3e5), 30e-6 + 2e5 * 1e-9));
  // To a second rank the root sends behind the first message; the bucket has filled for 20 us.
  CHECK(close(seconds("linear", 3, 3e5), 30e-6 + 5e5 * 1e-9));
  // One after the other is busy for all that comes and goes, back to back.
  const double period = wire(Kind::broadcast, "linear", 3, *network, {.bytes = 8});
  CHECK(close(period, 2 * 10e-6));
  // Calls that move more than comes between them find it empty.
  CHECK(close(wire(Kind::broadcast, "linear", 3, *network, {.bytes = 1e6}), 2e-3, 1e-6));
  const MeasuredLink deep{
      .latency = 30e-6, .seconds_per_byte = 1e-9, .overhead = {}, .bucket = 5e5};
  const auto filled = measured_network({{0, 1}}, {"host", "network"}, {{}, deep}, {});
  const WireTask alone{.bytes = 1e6, .alone = true};
  CHECK(close(wire(Kind::broadcast, "linear", 2, *filled, alone), 30e-6 + 1e-3 - 200e-6));
  const auto pair = measured_network({{0, 1}}, {"host", "network"}, {{}, {}}, {{0, 1, shaped}});
  CHECK(close(wire(Kind::broadcast, "linear", 2, *pair, {.bytes = 3e5, .alone = true}), 230e-6));
}

TEST(each_byte_keeps_both_ends_busy) {
  const auto network = on_cores(2, 2, 0, 1e-9);
  const auto seconds = [&](double bytes) {
    return wire(Kind::broadcast, "linear", 2, *network, {.bytes = bytes, .alone = true});
  };
  CHECK(close(seconds(1000), 30e-6 + 2 * 1e-6));
  // Of long ones all but a segment is taken while the rest is handed over.
  CHECK(close(seconds(1e6), 30e-6 + 1e-3 + Overhead::kSegment * 1e-9));
}

TEST(ranks_take_turns_on_cores_that_they_share) {
  const auto exchange = [](int cores) {
    return wire(Kind::allreduce, "recursive_doubling", 2, *on_cores(2, cores, 0, 0),
                {.bytes = 8, .alone = true});
  };
  CHECK(close(exchange(2), 30e-6));
  CHECK(close(exchange(0), 30e-6));  // as many as there are ranks
  CHECK(close(exchange(1), 40e-6));  // two messages are handed over, then two taken in
}

TEST(links_are_taken_in_the_order_in_which_messages_come) {
  // Two of four ranks hand over all three messages before the others have a core.
  const auto seconds = [](int cores) {
    return wire(Kind::alltoall, "linear", 4, *on_cores(4, cores, 1e-8, 0),
                {.bytes = 4e6, .alone = true});
  };
  CHECK(close(seconds(4), 3e-2, 1e-2));
  CHECK(close(seconds(2), 3e-2, 1e-2));
}

TEST(messages_that_follow_at_once_are_handed_over_together) {
  // A chain passes its vector on in eight pieces; a link takes nothing for any of them.
  const char* words = "hosts:4x1,us=0,overhead_us=10,gbit=8e9,fold_gbyte=1e9,copy_gbyte=1e9";
  const auto alone = [&](const char* name) {
    return wire(Kind::reduce, name, 4, words, {.bytes = 1024, .alone = true}, {.lag = 0});
  };
  CHECK(close(alone("chain"), 6 * 10e-6, 1e-3));   // three hops
  CHECK(close(alone("direct"), 4 * 10e-6, 1e-3));  // one rank takes in three messages
  // Also where a rank has many for each of two others, and bytes cost next to nothing.
  const auto two_ways = [](double work_of_byte) {
    return wire(Kind::broadcast, "double_tree", 4, *on_cores(4, 4, 0, work_of_byte),
                {.bytes = 1024, .alone = true});
  };
  CHECK(close(two_ways(1e-18), two_ways(0)));
}

TEST(a_wire_fold_hides_behind_the_next_tile) {
  const auto seconds = [](double tile) {
    return wire(Kind::allreduce, "ring", 4,
                "hosts:4x1,us=0,overhead_us=0,gbit=8,fold_gbyte=4,copy_gbyte=1e9",
                {.bytes = 8e6, .tile_bytes = tile});
  };
  CHECK(close(seconds(0), 12e-3 + 3 * 2e-3 * 0.5, 1e-3));
  CHECK(seconds(5e4) < 0.9 * seconds(0));
  CHECK(seconds(5e4) >= 12e-3);
}

TEST(all_wire_plans_take_a_time_and_more_of_more_bytes) {
  for (const Algorithm* a : algorithms()) {
    for (const int p : {1, 2, 3, 5, 8}) {
      if (!a->fits(p)) continue;
      double before = 0;
      for (const double bytes : {0.0, 64 * kKiB, 4 * kMiB}) {
        const double found = wire(a->kind, a->name, p, "hosts:8x1",
                                  {.bytes = bytes, .tile_bytes = 64 * kKiB}, {.pace = 4});
        CHECK(std::isfinite(found) && found >= 0.99 * before);
        CHECK(p == 1 || found > 0);
        before = found;
      }
    }
  }
}

TEST(too_small_a_network_is_refused) {
  const Error error =
      thrown<Error>([] { (void)wire(Kind::allreduce, "ring", 5, "hosts:4x1", {.bytes = 8}); });
  CHECK(error.status == Status::invalid_argument);
  CHECK(std::string(error.what()).find("the topology has 4 ranks, the plan 5") == 0);
}

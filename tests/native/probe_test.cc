// SPDX-License-Identifier: Apache-2.0
// What a machine is found to cost: plausible on any machine, the same on all ranks, and calls work
// on afterwards. Nothing here fails because a machine is slow or busy.
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "bootstrap/membership.h"
#include "check.h"
#include "collectives.h"
#include "probe/figures.h"
#include "probe/machine_probe.h"
#include "transport/core_cache.h"

using namespace coll;

namespace {

constexpr double kBudget = 0.004;

std::vector<coll_comm*> threads(int p) {
  coll_options options{};
  options.size = sizeof options;
  options.ranks = p;
  options.timeout = 30;
  std::vector<coll_comm*> comms(static_cast<std::size_t>(p));
  CHECK(coll_local(&options, comms.data()) == COLL_OK);
  return comms;
}

coll_status barrier(coll_comm* comm) {
  return coll_collective(comm, COLL_BARRIER, nullptr, nullptr, 0, COLL_FLOAT32, COLL_SUM, 0, -1,
                         COLL_MODE_AUTO, 0);
}

bool positive(const coll_curve& c) {
  bool good = true;
  for (int i = 0; i < 4; ++i) {
    good = good && std::isfinite(c.seconds_per_byte[i]) && c.seconds_per_byte[i] > 0;
    good = good && (i == 0 ? c.bytes[i] > 0 : c.bytes[i] > c.bytes[i - 1]);
  }
  return good;
}

void check_plausible(const coll_machine& m, bool alone) {
  for (const coll_curve& c : {m.read, m.write, m.stream}) CHECK(positive(c));
  for (const coll_core_costs& between : {m.near, m.far}) {
    CHECK(between.flag > 0 && between.flag < 10);
    for (const coll_curve& c :
         {between.read, between.write, between.streamed_read, between.streamed_write}) {
      CHECK(positive(c));
    }
  }
  CHECK(m.near.measured + m.far.measured == (alone ? 0 : 1));
  CHECK(m.op > 0 && m.turn > 0 && m.fold > 0 && m.private_cache > 0 && m.shared_cache > 0);
}

void copy(void* to, const void* from, std::size_t bytes, bool) noexcept {
  std::memcpy(to, from, bytes);
}
void add(void* to, const void* a, const void*, std::size_t bytes) noexcept {
  std::memcpy(to, a, bytes);
}

}  // namespace

TEST(all_ranks_find_the_same_and_go_on) {
  for (const int p : {1, 2, 3, 5}) {
    const auto comms = threads(p);
    std::vector<coll_machine> found(static_cast<std::size_t>(p));
    std::vector<std::vector<double>> flags(found.size());
    run_ranks(p, [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      flags[r].resize(found.size() * found.size());
      for (int again = 0; again < 2; ++again) {
        CHECK(barrier(comms[r]) == COLL_OK);
        CHECK(coll_measure_machine(comms[r], kBudget, &found[r], flags[r].data()) == COLL_OK);
        CHECK(barrier(comms[r]) == COLL_OK);
      }
      std::vector<float> x(50000, static_cast<float>(rank + 1));
      CHECK(coll_allreduce(comms[r], x.data(), x.data(), x.size(), COLL_FLOAT32, COLL_SUM) ==
            COLL_OK);
      const int sum = p * (p + 1) / 2;
      CHECK(x.front() == static_cast<float>(sum) && x.back() == x.front());
    });
    check_plausible(found[0], p == 1);
    for (const coll_machine& other : found) {
      CHECK(std::memcmp(&other.read, &found[0].read, sizeof other.read) == 0);
      CHECK(other.near.flag == found[0].near.flag && other.far.flag == found[0].far.flag);
      CHECK(other.fold == found[0].fold && other.cores == found[0].cores);
    }
    for (const auto& matrix : flags) CHECK(matrix == flags[0]);
    if (p == 2) CHECK(flags[0][1] > 0);
    for (coll_comm* comm : comms) coll_close(comm);
  }
}

TEST(a_rank_that_does_not_come_is_named) {
  const auto group = local_group({.ranks = 2, .slot_bytes = 64 << 10});
  const Error error = thrown<Error>([&] {
    (void)probe_machine(group[1].segment, 1, {.copy = copy, .add = add},
                        {.seconds = 0.001, .timeout = 0.01, .token = 77});
  });
  CHECK(error.status == Status::timeout && error.rank == 0);
  CHECK(std::string(error.what()).find("rank 0 did not come") == 0);
}

TEST(slots_may_be_too_small) {
  const auto group = local_group({.ranks = 2, .slot_bytes = 4096});
  const Error error = thrown<Error>([&] {
    (void)probe_machine(group[0].segment, 0, {.copy = copy, .add = add}, {.seconds = 0.001});
  });
  CHECK(error.status == Status::unsupported);
}

TEST(times_to_measure_for_are_seconds) {
  coll_comm* comm = threads(1).front();
  coll_machine found{};
  for (const double seconds : {0.0, -1.0, 61.0, std::nan("")}) {
    CHECK(coll_measure_machine(comm, seconds, &found, nullptr) == COLL_INVALID_ARGUMENT);
  }
  coll_close(comm);
}

TEST(figures_are_taken_apart) {
  Figures f;
  f.flag = 1e-6;
  f.op = 1e-8;
  f.turn = 1e-7;
  f.copy = {3, 3, 3, 3};
  f.add = {4, 4, 4, 4};
  f.stream = {2, 2, 2, 2};
  f.stage = f.fetch = f.stream_stage = f.stream_fetch = {7, 7, 7, 7};
  const ProbedSizes sizes{.wholes = {1e3, 1e4, 1e5, 1e6}, .messages = {1e2, 1e3, 1e4, 1e5}};
  const MachineCosts costs = costs_of(f, sizes);
  CHECK(costs.read.at(1) == 1 && costs.write.at(1) == 2 && costs.stream.at(1) == 1);
  CHECK(costs.fold == 2 && !costs.measured[0] && costs.measured[1]);
  CHECK(costs.at(Placement::far).write.at(1) == 6 && costs.at(Placement::far).read.at(1) == 5);
  CHECK(costs.at(Placement::near).flag < 1e-6);
  check_costs(costs);
}

TEST(sizes_of_caches_are_read_as_the_system_writes_them) {
  CHECK(cache_bytes("32768K") == std::size_t{32} << 20);
  CHECK(cache_bytes("2M") == std::size_t{2} << 20 && cache_bytes("1G") == std::size_t{1} << 30);
  CHECK(cache_bytes("512") == 512);
  for (const char* text : {"", "K", "-1K", "12T", "12KB", "99999999999999999999999"}) {
    CHECK(cache_bytes(text) == 0);
  }
  const std::size_t found = shared_cache();  // not every system says it
  CHECK(found == 0 || found >= 64 << 10);
}

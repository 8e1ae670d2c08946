// SPDX-License-Identifier: Apache-2.0
// What a rank that connects one way can tell of a machine: that it answers, refuses, or is silent.
#include "bootstrap/one_way.h"

#include "mesh_of_test.h"

namespace {

using namespace coll;
using namespace coll::testing;

// Rank 1 of two, which asks rank 0.
std::unique_ptr<OneWay> asking(Job& job, const MeshLimits& limits = {}) {
  auto ways = std::make_unique<OneWay>(job.identity(1), secret_of_job(),
                                       std::move(job.listeners[1]), job.doors, limits);
  ways->want(0);
  return ways;
}

template <class Each>
void for_seconds(double seconds, OneWay& ways, Each each) {
  for (const Deadline end(seconds); !end.passed(); ::usleep(500)) {
    ways.step();
    each();
  }
}

TEST(a_door_that_lets_go_of_its_guests_is_not_silent) {
  Job job(2);
  MeshLimits limits;
  limits.longest_pause_s = 0.02;
  const auto ways = asking(job, limits);
  double longest = 0;
  for_seconds(0.3, *ways, [&] {
    job.listeners[0].accept();
    longest = std::max(longest, ways->silence(0));
  });
  CHECK(longest < 0.2 && ways->trouble(0).empty());
}

TEST(a_door_where_nobody_listens_is_silent_until_it_counts_as_refusing) {
  Job job(2);
  job.listeners[0] = TcpListener(loopback(), 4);
  MeshLimits limits;
  limits.refused_s = 0.2;
  const auto ways = asking(job, limits);
  CHECK(ways->silence(0) == 0);
  for_seconds(0.1, *ways, [] {});
  CHECK(ways->silence(0) >= 0.05 && ways->trouble(0).empty());
  for_seconds(0.3, *ways, [] {});
  CHECK(says(ways->trouble(0), "ECONNREFUSED") && says(ways->trouble(0), "for 0.2 s"));
}

TEST(who_is_connected_but_computes_is_not_silent) {
  Job job(2);
  const auto ways = asking(job);
  for_seconds(0.1, *ways, [] {});
  CHECK(ways->silence(0) == 0);
}

}  // namespace

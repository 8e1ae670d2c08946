// SPDX-License-Identifier: Apache-2.0
// A rank that only sends runs ahead of those that receive. What the slow ones still have to look at
// must stay where it is, however the calls are mixed.
#include <unistd.h>

#include <vector>

#include "check.h"
#include "collectives.h"

namespace {

constexpr int kRounds = 40;

coll_status broadcast(coll_comm* comm, std::vector<std::int32_t>& x, int mode) {
  return coll_collective(comm, COLL_BROADCAST, x.data(), x.data(), x.size(), COLL_INT32, COLL_SUM,
                         0, -1, mode, 0);
}

void expect_calls_in_turns(int p, int of_a_kind) {
  coll_options options{};
  options.size = sizeof options;
  options.ranks = p;
  options.timeout = 20;
  std::vector<coll_comm*> comms(static_cast<std::size_t>(p));
  CHECK(coll_local(&options, comms.data()) == COLL_OK);
  run_ranks(p, [&](int rank) {
    coll_comm* comm = comms[static_cast<std::size_t>(rank)];
    for (int round = 0; round < kRounds; ++round) {
      if (rank == p - 1 && round % 4 == 0) ::usleep(2000);
      for (int i = 0; i < 2 * of_a_kind; ++i) {
        std::vector<std::int32_t> x(50, rank == 0 ? 100 * round + i : -1);
        const int mode = i < of_a_kind ? COLL_MODE_STAGED : COLL_MODE_INLINE;
        const coll_status status = broadcast(comm, x, mode);
        if (status != COLL_OK) check::fail(coll_last_error());
        for (const std::int32_t value : x) CHECK(value == 100 * round + i);
      }
    }
  });
  for (coll_comm* comm : comms) CHECK(coll_close(comm) == COLL_OK);
}

TEST(one_way_calls_through_both_rings) {
  for (const int p : {2, 3, 5}) {
    for (const int of_a_kind : {1, 3, 4, 6, 9}) expect_calls_in_turns(p, of_a_kind);
  }
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// A call whose messages no slot can hold is refused every time.
#include <vector>

#include "check.h"
#include "collectives.h"

namespace {

// The short way of a call that repeats the last one must not begin at one that came to nothing.
TEST(a_call_that_cannot_be_bound_fails_again) {
  constexpr int kRanks = 80;  // messages of a line each are more than a slot holds
  coll_options options{};
  options.size = sizeof options;
  options.ranks = kRanks;
  options.timeout = 20;
  options.slot_bytes = 4096;
  std::vector<coll_comm*> comms(kRanks);
  CHECK(coll_local(&options, comms.data()) == COLL_OK);
  std::vector<double> in(kRanks * kRanks), out(kRanks * kRanks);
  for (int turn = 0; turn < 3; ++turn) {
    const coll_status status = coll_collective(
        comms[0], COLL_ALLTOALL, in.data(), out.data(), kRanks, COLL_FLOAT64, COLL_SUM, 0,
        coll_algorithm_find(COLL_ALLTOALL, "linear"), COLL_MODE_STAGED, 0);
    if (status != COLL_UNSUPPORTED) check::fail(coll_last_error());
  }
  for (coll_comm* comm : comms) CHECK(coll_close(comm) == COLL_OK);
}

}  // namespace

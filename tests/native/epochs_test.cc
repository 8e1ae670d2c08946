// SPDX-License-Identifier: Apache-2.0
// Where the cores are: seen by rank 0, and taken for granted by all ranks from the same call on.
#include "communicator/epochs.h"

#include <cmath>
#include <vector>

#include "engine/line_probe.h"
#include "groups_of_test.h"
#include "select/choose.h"

namespace {

using namespace coll;
using namespace coll::testing;

TEST(cores_are_far_where_no_sample_is_short) {
  LineProbe probe;
  CHECK(probe.placement(Placement::near) == Placement::near);
  CHECK(probe.placement(Placement::far) == Placement::far);
  for (int i = 0; i < 3; ++i) probe.note(250);
  CHECK(probe.placement(Placement::near) == Placement::far);
  probe.note(60);
  CHECK(probe.placement(Placement::far) == Placement::near);
  probe.note(1e6);  // a rank lost its core
  probe.note(1e6);
  CHECK(probe.placement(Placement::far) == Placement::near);
  std::atomic<std::uint64_t> word{0};
  probe.store(word, 7);
  CHECK(word == 7);
}

TEST(what_is_staged_goes_around_the_caches_of_far_cores) {
  const std::size_t bytes = 1 << 20;
  CHECK(!choose(Kind::allreduce, 2, bytes).streams);
  CHECK(choose(Kind::allreduce, 2, bytes, {.placement = Placement::far}).streams);
  CHECK(!choose(Kind::allreduce, 2, 8, {.placement = Placement::far}).streams);
}

// Until the next epoch that begins with another placement.
void small_calls(coll_comm* comm, std::uint64_t until) {
  while (comm->communicator.calls() < until) sum(comm, 1);
}

void check_large_calls(coll_comm* comm, int turns) {
  const int p = coll_ranks(comm);
  for (int turn = 0; turn < turns; ++turn) {
    std::vector<float> x(std::size_t{1} << (turn % 8 + 10), 1.0F);
    ok(coll_allreduce(comm, x.data(), x.data(), x.size(), COLL_FLOAT32, COLL_SUM));
    CHECK(x.front() == static_cast<float>(p) && x.back() == static_cast<float>(p));
  }
}

TEST(all_ranks_turn_at_the_same_call) {
  on_both(3, [](const Comm& comm) {
    const Communicator& communicator = comm->communicator;
    std::vector<float> x(30000, 1.0F), y(30000);
    coll_call call{};
    call.size = sizeof call;
    call.kind = COLL_ALLREDUCE;
    call.dtype = COLL_FLOAT32;
    call.input = x.data();
    call.output = y.data();
    call.count = x.size();
    call.algorithm = call.mode = -1;
    coll_persistent* persistent = nullptr;
    // Ranks make it at different calls, as they may.
    const auto made_at = static_cast<std::uint64_t>(20 + 9 * communicator.rank());
    small_calls(comm.get(), 20);
    if (communicator.rank() == 0) {  // it has spoken of the next epoch, and small calls say nothing
      const Segment& segment = communicator.membership().segment;
      segment.header().placements.of_epoch[1].store(static_cast<std::uint32_t>(Placement::far));
    }
    small_calls(comm.get(), made_at);
    CHECK(communicator.placement() == (made_at < 32 ? Placement::near : Placement::far));
    ok(coll_persistent_new(comm.get(), &call, &persistent));
    small_calls(comm.get(), 70);
    CHECK(communicator.placement() == Placement::far);
    CHECK(split(comm.get(), 0)->communicator.placement() == Placement::far);
    check_large_calls(comm.get(), 100);
    for (int turn = 0; turn < 70; ++turn) {
      y.assign(y.size(), 0);
      ok(coll_run_persistent(persistent));
      CHECK(y.front() == 3 && y.back() == 3);
    }
    ok(coll_persistent_free(persistent));
  });
}

}  // namespace

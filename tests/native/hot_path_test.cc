// SPDX-License-Identifier: Apache-2.0
// Nothing is allocated in a call: plans, bindings and scratch are made at the first call of a
// shape, binding again to other buffers or counts allocates nothing.
#include <array>
#include <atomic>
#include <vector>

#include "check.h"
#include "collectives.h"
#include "counted_allocations.h"

namespace {

constexpr int kRanks = 3;
constexpr std::size_t kMost = 300006;

void all_calls(coll_comm* comm, std::vector<double>& in, std::vector<double>& out) {
  for (int a = 0; a < coll_algorithm_count(); ++a) {
    if (coll_algorithm_fits(a, kRanks) == 0) continue;
    coll_algorithm info{};
    CHECK(coll_algorithm_get(a, &info) == COLL_OK);
    for (const int mode : {COLL_MODE_STAGED, COLL_MODE_INLINE, COLL_MODE_PULL, COLL_MODE_PUSH}) {
      for (const std::size_t count : {0UL, 3UL, 30UL, kMost / 3}) {
        if (mode == COLL_MODE_INLINE && count > 30) continue;
        CHECK(coll_collective(comm, info.kind, in.data(), out.data(), count, COLL_FLOAT64, COLL_SUM,
                              1, a, mode, 0) == COLL_OK);
      }
    }
  }
}

// Unequal parts, whose lengths stand in memory that the caller uses anew each time.
void unequal_calls(coll_comm* comm, std::vector<double>& in, std::vector<double>& out) {
  for (const std::size_t n : {1UL, 100UL, kMost / 6}) {
    for (const std::int32_t kind : {COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_ALLTOALL}) {
      std::array<std::size_t, kRanks * kRanks> counts{};
      for (std::size_t i = 0; i < counts.size(); ++i)
        counts.at(i) = kind == COLL_ALLTOALL ? n / 3 : n + n * (i % 2);
      coll_call call{};
      call.size = sizeof(call);
      call.kind = kind;
      call.dtype = COLL_FLOAT64;
      call.op = COLL_SUM;
      call.algorithm = -1;
      call.mode = COLL_MODE_AUTO;
      call.input = in.data();
      call.output = out.data();
      call.counts = counts.data();
      call.count = n;
      CHECK(coll_run(comm, &call) == COLL_OK);
    }
  }
}

TEST(a_call_allocates_nothing) {
  coll_options options{};
  options.size = sizeof(options);
  options.ranks = kRanks;
  options.timeout = 60;
  std::vector<coll_comm*> comms(kRanks);
  CHECK(coll_local(&options, comms.data()) == COLL_OK);
  std::atomic<long> before{0}, after{0};
  run_ranks(kRanks, [&](int rank) {
    coll_comm* comm = comms[static_cast<std::size_t>(rank)];
    std::vector<double> in(kMost), out(kMost), other(kMost);
    all_calls(comm, in, out);
    unequal_calls(comm, in, out);
    CHECK(coll_barrier(comm) == COLL_OK);
    if (rank == 0) before = allocations.load();
    CHECK(coll_barrier(comm) == COLL_OK);
    all_calls(comm, in, out);
    all_calls(comm, in, other);
    unequal_calls(comm, in, out);
    unequal_calls(comm, in, other);
    CHECK(coll_barrier(comm) == COLL_OK);
    if (rank == 0) after = allocations.load();
    CHECK(coll_barrier(comm) == COLL_OK);
  });
  CHECK(before.load() > 0);
  if (after != before) check::fail(std::to_string(after - before) + " allocations");
  for (coll_comm* comm : comms) CHECK(coll_close(comm) == COLL_OK);
}

}  // namespace

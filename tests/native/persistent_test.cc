// SPDX-License-Identifier: Apache-2.0
// Persistent calls through the C interface: begun often, among others, and given up.
#include <string>
#include <vector>

#include "check.h"
#include "collectives.h"

namespace {

std::vector<coll_comm*> ranks_of(int p) {
  coll_options options{};
  options.size = sizeof options;
  options.ranks = p;
  options.timeout = 20;
  std::vector<coll_comm*> comms(static_cast<std::size_t>(p));
  CHECK(coll_local(&options, comms.data()) == COLL_OK);
  return comms;
}

coll_call sum_of(const std::vector<double>& in, std::vector<double>& out) {
  coll_call call{};
  call.size = sizeof call;
  call.kind = COLL_ALLREDUCE;
  call.dtype = COLL_FLOAT64;
  call.op = COLL_SUM;
  call.input = in.data();
  call.output = out.data();
  call.count = in.size();
  call.algorithm = -1;
  call.mode = COLL_MODE_AUTO;
  return call;
}

TEST(begun_often_and_among_others) {
  for (int p = 1; p <= 4; ++p) {
    const auto comms = ranks_of(p);
    run_ranks(p, [&](int rank) {
      coll_comm* comm = comms[static_cast<std::size_t>(rank)];
      std::vector<double> small(3, 1), large(100000, 2), out_small(3), out_large(100000);
      coll_persistent *first = nullptr, *second = nullptr;
      const coll_call a = sum_of(small, out_small), b = sum_of(large, out_large);
      CHECK(coll_persistent_new(comm, &a, &first) == COLL_OK);
      CHECK(coll_persistent_new(comm, &b, &second) == COLL_OK);
      for (int turn = 0; turn < 30; ++turn) {
        CHECK(coll_run_persistent(first) == COLL_OK);
        CHECK(coll_start(second) == COLL_OK);
        CHECK(coll_finish(second) == COLL_OK);
        CHECK(coll_barrier(comm) == COLL_OK);
        CHECK(out_small[2] == p);
        CHECK(out_large.front() == 2 * p);
        CHECK(out_large.back() == 2 * p);
        out_small.assign(3, 0);
        out_large.assign(100000, 0);
      }
      CHECK(coll_persistent_free(second) == COLL_OK);
      CHECK(coll_run_persistent(first) == COLL_OK);
      CHECK(coll_persistent_free(first) == COLL_OK);
      CHECK(coll_barrier(comm) == COLL_OK);
    });
    for (coll_comm* comm : comms) CHECK(coll_close(comm) == COLL_OK);
  }
}

TEST(counts_are_its_own) {
  constexpr int kRanks = 3;
  const auto comms = ranks_of(kRanks);
  run_ranks(kRanks, [&](int rank) {
    coll_comm* comm = comms[static_cast<std::size_t>(rank)];
    std::vector<std::size_t> counts = {1, 2, 3};
    std::vector<double> in(6, rank + 1), out(counts[static_cast<std::size_t>(rank)]);
    coll_call call = sum_of(in, out);
    call.kind = COLL_REDUCE_SCATTER;
    call.counts = counts.data();
    coll_persistent* persistent = nullptr;
    CHECK(coll_persistent_new(comm, &call, &persistent) == COLL_OK);
    counts.assign(3, 99);
    for (int turn = 0; turn < 5; ++turn) {
      out.assign(out.size(), 0);
      CHECK(coll_run_persistent(persistent) == COLL_OK);
      for (const double sum : out) CHECK(sum == 6);
    }
    CHECK(coll_persistent_free(persistent) == COLL_OK);
  });
  for (coll_comm* comm : comms) CHECK(coll_close(comm) == COLL_OK);
}

TEST(misuse_is_told_of) {
  const auto comms = ranks_of(2);
  std::vector<double> in(4, 1), out(4);
  const coll_call call = sum_of(in, out);
  coll_persistent* persistent = nullptr;
  CHECK(coll_persistent_new(comms[0], nullptr, &persistent) == COLL_INVALID_ARGUMENT);
  CHECK(coll_persistent_new(comms[0], &call, nullptr) == COLL_INVALID_ARGUMENT);
  CHECK(coll_persistent_new(nullptr, &call, &persistent) == COLL_CLOSED);
  CHECK(coll_start(nullptr) == COLL_INVALID_ARGUMENT);
  CHECK(coll_persistent_free(nullptr) == COLL_OK);
  CHECK(coll_persistent_new(comms[0], &call, &persistent) == COLL_OK);
  CHECK(coll_finish(persistent) == COLL_INVALID_ARGUMENT);
  CHECK(std::string(coll_last_error()).find("not started") != std::string::npos);
  CHECK(coll_start(persistent) == COLL_OK);
  CHECK(coll_start(persistent) == COLL_INVALID_ARGUMENT);  // the other rank has not come
  CHECK(coll_persistent_free(persistent) == COLL_INVALID_ARGUMENT);
  CHECK(coll_abort(comms[1], "enough") == COLL_OK);
  CHECK(coll_finish(persistent) == COLL_ABORTED);
  CHECK(coll_persistent_free(persistent) == COLL_OK);
  for (coll_comm* comm : comms) coll_close(comm);
}

}  // namespace

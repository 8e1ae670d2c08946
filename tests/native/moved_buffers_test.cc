// SPDX-License-Identifier: Apache-2.0
// Calls that differ from the one before in their buffers alone are bound in a short way: results
// must be those of the buffers given, and what is wrong with these is still refused.
#include <numeric>
#include <vector>

#include "check.h"
#include "collectives.h"

namespace {

constexpr int kRanks = 3;

std::vector<coll_comm*> ranks_of(int p) {
  coll_options options{};
  options.size = sizeof options;
  options.ranks = p;
  options.timeout = 20;
  std::vector<coll_comm*> comms(static_cast<std::size_t>(p));
  CHECK(coll_local(&options, comms.data()) == COLL_OK);
  return comms;
}

coll_status sum(coll_comm* comm, const double* in, double* out, std::size_t n, int mode) {
  return coll_collective(comm, COLL_ALLREDUCE, in, out, n, COLL_FLOAT64, COLL_SUM, 0, -1, mode, 0);
}

// Of small vectors, which have ready moves, and of tiled ones; in every mode.
TEST(sums_of_other_buffers_each_time) {
  for (const int mode :
       {COLL_MODE_AUTO, COLL_MODE_STAGED, COLL_MODE_INLINE, COLL_MODE_PULL, COLL_MODE_PUSH}) {
    const auto comms = ranks_of(kRanks);
    run_ranks(kRanks, [&](int rank) {
      coll_comm* comm = comms[static_cast<std::size_t>(rank)];
      for (const std::size_t n : {std::size_t{1}, std::size_t{7}, std::size_t{300000}}) {
        if (mode == COLL_MODE_INLINE && n > 7) continue;
        std::vector<std::vector<double>> buffers(4, std::vector<double>(n));
        for (int turn = 0; turn < 24; ++turn) {
          std::vector<double>& in = buffers[static_cast<std::size_t>(turn % 4)];
          std::vector<double>& out = buffers[static_cast<std::size_t>((turn + turn / 4) % 4)];
          std::iota(in.begin(), in.end(), turn + rank);
          CHECK(sum(comm, in.data(), out.data(), n, mode) == COLL_OK);
          for (std::size_t i = 0; i < n; i += 1 + n / 5) {
            CHECK(out[i] == 3.0 * (turn + static_cast<double>(i)) + 3);
          }
        }
      }
    });
    for (coll_comm* comm : comms) CHECK(coll_close(comm) == COLL_OK);
  }
}

TEST(parts_of_other_buffers_each_time) {
  const auto comms = ranks_of(kRanks);
  run_ranks(kRanks, [&](int rank) {
    coll_comm* comm = comms[static_cast<std::size_t>(rank)];
    std::vector<std::vector<double>> whole(3, std::vector<double>(kRanks)), part(2, {0.0});
    for (int turn = 0; turn < 12; ++turn) {
      std::vector<double>& all = whole[static_cast<std::size_t>(turn % 3)];
      double& own = part[static_cast<std::size_t>(turn % 2)][0];
      own = turn + rank;
      CHECK(coll_allgather(comm, &own, all.data(), 1, COLL_FLOAT64) == COLL_OK);
      for (int r = 0; r < kRanks; ++r) CHECK(all[static_cast<std::size_t>(r)] == turn + r);
      // In place: this rank's part is where it belongs in the whole.
      double* mine = all.data() + rank;
      *mine = turn - rank;
      CHECK(coll_allgather(comm, mine, all.data(), 1, COLL_FLOAT64) == COLL_OK);
      for (int r = 0; r < kRanks; ++r) CHECK(all[static_cast<std::size_t>(r)] == turn - r);
    }
  });
  for (coll_comm* comm : comms) CHECK(coll_close(comm) == COLL_OK);
}

// More calls than are kept ready, of other lengths, roots and operations, again and again.
TEST(many_calls_in_turns) {
  const auto comms = ranks_of(kRanks);
  run_ranks(kRanks, [&](int rank) {
    coll_comm* comm = comms[static_cast<std::size_t>(rank)];
    std::vector<double> x(2000), out(2000);
    for (int turn = 0; turn < 100; ++turn) {
      const auto n = static_cast<std::size_t>(1 + turn % 11);
      const std::size_t last = turn % 7 == 0 ? 1999 : n - 1;
      x.assign(x.size(), turn + rank);
      CHECK(sum(comm, x.data(), out.data(), last + 1, COLL_MODE_AUTO) == COLL_OK);
      CHECK(out[last] == 3.0 * turn + 3);
      const int root = turn % kRanks;
      CHECK(coll_broadcast(comm, x.data(), x.data(), n, COLL_FLOAT64, root) == COLL_OK);
      CHECK(x[n - 1] == turn + root);
      CHECK(coll_scan(comm, x.data(), out.data(), n, COLL_FLOAT64, turn % 2) == COLL_OK);
      double expected = turn + root;
      for (int r = 0; r < rank; ++r) {
        expected = turn % 2 == 0 ? expected + turn + root : expected * (turn + root);
      }
      CHECK(out[n - 1] == expected);
      CHECK(coll_barrier(comm) == COLL_OK);
    }
  });
  for (coll_comm* comm : comms) CHECK(coll_close(comm) == COLL_OK);
}

// Calls of late share their scratch memory, which moves as it grows.
TEST(algorithms_with_scratch_in_turns) {
  const auto comms = ranks_of(kRanks);
  run_ranks(kRanks, [&](int rank) {
    coll_comm* comm = comms[static_cast<std::size_t>(rank)];
    for (std::size_t most = 2; most < 3000; most *= 3) {
      for (int a = 0; a < coll_algorithm_count(); ++a) {
        coll_algorithm info{};
        CHECK(coll_algorithm_get(a, &info) == COLL_OK);
        if (info.kind != COLL_ALLREDUCE || coll_algorithm_fits(a, kRanks) == 0) continue;
        for (const std::size_t n : {most, std::size_t{2}}) {
          std::vector<double> in(n, rank + 1.0), out(n);
          CHECK(coll_collective(comm, COLL_ALLREDUCE, in.data(), out.data(), n, COLL_FLOAT64,
                                COLL_SUM, 0, a, COLL_MODE_STAGED, 0) == COLL_OK);
          for (const double x : out) CHECK(x == 6);
        }
      }
    }
  });
  for (coll_comm* comm : comms) CHECK(coll_close(comm) == COLL_OK);
}

TEST(wrong_buffers_are_refused_after_right_ones) {
  const auto comms = ranks_of(1);
  coll_comm* comm = comms[0];
  std::vector<double> memory(12, 1.0);
  double* at = memory.data();
  const auto refused = [&](const double* in, double* out) {
    return sum(comm, in, out, 4, COLL_MODE_AUTO) == COLL_INVALID_ARGUMENT;
  };
  for (int turn = 0; turn < 2; ++turn) {
    CHECK(sum(comm, at, at + 4, 4, COLL_MODE_AUTO) == COLL_OK);
    CHECK(refused(at, at + 2));
    CHECK(refused(at + 2, at));
    CHECK(refused(nullptr, at));
    CHECK(refused(at, nullptr));
    CHECK(refused(nullptr, nullptr));
    CHECK(sum(comm, at + 8, at, 4, COLL_MODE_AUTO) == COLL_OK);
    CHECK(sum(comm, at + 3, at + 3, 4, COLL_MODE_AUTO) == COLL_OK);
    CHECK(coll_collective(comm, COLL_ALLREDUCE, at, at, 4, COLL_FLOAT64, COLL_SUM, 0, -1, -1,
                          -1.0) == COLL_INVALID_ARGUMENT);
  }
  CHECK(coll_close(comm) == COLL_OK);
}

}  // namespace

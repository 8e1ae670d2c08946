// SPDX-License-Identifier: Apache-2.0
// Groups of calls: joined ones, messages, several communicators of one thread.
#include <numeric>

#include "ranks.h"

namespace {

using namespace nccl_test;

using Floats = std::vector<float>;

// Many small allreduces, with others between them, some in place and one too long to be joined.
void check_mixture(ncclComm_t comm, int rank, int p) {
  const auto n = static_cast<std::size_t>(p);
  constexpr std::size_t kLong = 20'000;
  std::vector<Floats> sums(40);
  std::vector<std::vector<int>> largest(10);
  Floats parts(3 * n, static_cast<float>(rank)), own(3), everywhere(2 * n), root_only(5, 1),
      from_root(4, static_cast<float>(rank)), in(7, static_cast<float>(rank + 1)), out(7);
  good(ncclGroupStart());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i].assign(i == 5 ? kLong : i + 1, static_cast<float>(i) + static_cast<float>(rank));
    good(ncclAllReduce(sums[i].data(), sums[i].data(), sums[i].size(), ncclFloat32, ncclSum, comm,
                       nullptr));
    if (i % 4 != 0) continue;
    largest[i / 4].assign(i + 1, rank);
    good(ncclAllReduce(largest[i / 4].data(), largest[i / 4].data(), i + 1, ncclInt32, ncclMax,
                       comm, nullptr));
  }
  for (int twice = 0; twice < 2; ++twice) {
    good(ncclReduceScatter(parts.data(), own.data(), 3, ncclFloat32, ncclSum, comm, nullptr));
    good(ncclAllGather(in.data(), everywhere.data(), 2, ncclFloat32, comm, nullptr));
    good(ncclReduce(root_only.data(), root_only.data(), 5, ncclFloat32, ncclSum, 1, comm, nullptr));
    good(ncclBroadcast(from_root.data(), from_root.data(), 4, ncclFloat32, 1, comm, nullptr));
  }
  good(ncclAllReduce(in.data(), out.data(), 7, ncclFloat32, ncclAvg, comm, nullptr));
  std::vector<int> whole(4, 5 * rank), halves(2 * n, 5 * rank), half(2);
  for (int* at : {&whole[0], &whole[2]}) {
    good(ncclAllReduce(at, at, 2, ncclInt32, ncclAvg, comm, nullptr));
    good(ncclReduceScatter(halves.data(), half.data(), 2, ncclInt32, ncclAvg, comm, nullptr));
  }
  good(ncclGroupEnd());
  CHECK(whole[0] == 5 * (p - 1) / 2 && whole[3] == whole[0] && half[1] == whole[0]);
  float ranks = 0;  // their sum
  for (int r = 0; r < p; ++r) ranks += static_cast<float>(r);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const float wanted = static_cast<float>(i) * static_cast<float>(p) + ranks;
    for (const float value : sums[i]) CHECK(value == wanted);
  }
  for (const auto& values : largest) CHECK(values.back() == p - 1);
  CHECK(own[2] == ranks && from_root[3] == 1);
  for (std::size_t r = 0; r < n; ++r) CHECK(everywhere[2 * r + 1] == static_cast<float>(r + 1));
  CHECK(out[6] == static_cast<float>(p + 1) / 2 && in[6] == static_cast<float>(rank + 1));
}

// Everybody sends to everybody, more than any buffer on the way holds, and to itself.
void check_messages(ncclComm_t comm, int rank, int p) {
  constexpr std::size_t kLong = 300'000;
  const auto n = static_cast<std::size_t>(p);
  std::vector<Floats> out(n, Floats(kLong, static_cast<float>(rank))), in(n, Floats(kLong));
  good(ncclGroupStart());
  for (int peer = 0; peer < p; ++peer) {
    const auto at = static_cast<std::size_t>(peer);
    good(ncclSend(out[at].data(), kLong, ncclFloat32, peer, comm, nullptr));
    good(ncclRecv(in[at].data(), kLong, ncclFloat32, peer, comm, nullptr));
  }
  good(ncclGroupEnd());
  for (std::size_t r = 0; r < n; ++r) {
    CHECK(in[r].front() == static_cast<float>(r) && in[r].back() == static_cast<float>(r));
  }
  float word = static_cast<float>(rank);
  if (rank == 0) good(ncclSend(&word, 1, ncclFloat32, p - 1, comm, nullptr));
  if (rank == p - 1) good(ncclRecv(&word, 1, ncclFloat32, 0, comm, nullptr));
  CHECK(rank != p - 1 || word == 0);
}

void check_nesting(ncclComm_t comm) {
  int x = 1, y = 1;
  good(ncclGroupStart());
  good(ncclGroupStart());
  good(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, comm, nullptr));
  good(ncclGroupEnd());
  CHECK(x == 1);  // not before the outer end
  good(ncclAllReduce(&y, &y, 1, ncclInt32, ncclSum, comm, nullptr));
  good(ncclGroupEnd());
  CHECK(x == 2 && y == 2);
}

TEST(groups_between_two) {
  with_comm(2, [](ncclComm_t comm, int rank) {
    check_mixture(comm, rank, 2);
    check_messages(comm, rank, 2);
    check_nesting(comm);
  });
}

TEST(groups_between_three) {
  with_comm(3, [](ncclComm_t comm, int rank) {
    check_mixture(comm, rank, 3);
    check_messages(comm, rank, 3);
  });
}

TEST(groups_over_tcp) {
  const OverTcp apart;
  with_comm(2, [](ncclComm_t comm, int rank) {
    check_mixture(comm, rank, 2);
    check_messages(comm, rank, 2);
  });
}

// The factor of an operation may go before its group ends.
TEST(factors_in_groups) {
  with_comm(2, [](ncclComm_t comm, int rank) {
    Floats x(3, 2), y(3, 5), z(3, 1);
    good(ncclGroupStart());
    for (Floats* array : {&x, &y}) {
      float factor = static_cast<float>(rank + 1);
      ncclRedOp_t op = ncclSum;
      good(ncclRedOpCreatePreMulSum(&op, &factor, ncclFloat32, ncclScalarHostImmediate, comm));
      good(ncclAllReduce(array->data(), array->data(), 3, ncclFloat32, op, comm, nullptr));
      good(ncclRedOpDestroy(op, comm));
    }
    good(ncclAllReduce(z.data(), z.data(), 3, ncclFloat32, ncclSum, comm, nullptr));
    good(ncclGroupEnd());
    CHECK(x[2] == 6 && y[2] == 15 && z[2] == 2);
  });
}

TEST(a_call_that_fails_makes_its_group_fail) {
  with_comm(1, [](ncclComm_t comm, int) {
    int x = 1;
    good(ncclGroupStart());
    good(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, comm, nullptr));
    bad(ncclAllReduce(&x, &x, 1, ncclNumTypes, ncclSum, comm, nullptr), ncclInvalidArgument,
        "datatype");
    bad(ncclGroupEnd(), ncclInvalidArgument, "datatype");
    good(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, comm, nullptr));
    bad(ncclGroupEnd(), ncclInvalidUsage, "ncclGroupStart");
    good(ncclGroupStart());
    bad(ncclGroupSimulateEnd(nullptr), ncclInvalidArgument, "simInfo");
    good(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, comm, nullptr));
  });
}

// ---- ranks whose groups differ ------------------------------------------------------------------

enum class What { allreduce, allgather };

// Groups that are as long as a whole on all ranks: calls of these counts.
void check_counts(What what, std::vector<std::size_t> of_rank_0, std::vector<std::size_t> of_rank_1,
                  const std::string& words) {
  with_comm(2, [&](ncclComm_t comm, int rank) {
    std::vector<Floats> all;
    good(ncclGroupStart());
    for (const std::size_t count : rank == 0 ? of_rank_0 : of_rank_1) {
      Floats& x = all.emplace_back(2 * count, 1.0F);
      if (what == What::allreduce) {
        good(ncclAllReduce(x.data(), x.data(), count, ncclFloat32, ncclSum, comm, nullptr));
      } else {
        float* const own = x.data() + static_cast<std::size_t>(rank) * count;
        good(ncclAllGather(own, x.data(), count, ncclFloat32, comm, nullptr));
      }
    }
    bad(ncclGroupEnd(), ncclInvalidUsage, words);
  });
}

void check_all_counts() {
  check_counts(What::allreduce, {3, 5}, {5, 3}, "counts 3, 5");
  check_counts(What::allgather, {3, 5}, {5, 3}, "counts 5, 3");
  check_counts(What::allreduce, {4, 4}, {8}, "counts 2 of 4");
  check_counts(What::allreduce, {2, 2, 2, 6}, {6, 2, 2, 2}, "counts 3 of 2, 6");
  // The same as far as an error can quote them.
  std::vector<std::size_t> many;
  for (std::size_t i = 1; i <= 60; ++i) many.push_back(i);
  std::vector<std::size_t> others = many;
  std::swap(others[58], others[59]);
  check_counts(What::allreduce, many, others, "which differ further on");
}

TEST(groups_of_other_counts_are_an_error) { check_all_counts(); }

TEST(groups_of_other_counts_are_an_error_over_tcp) {
  const OverTcp apart;
  check_all_counts();
}

void check_sum_beside_average() {
  for (const int calls : {1, 2}) {
    with_comm(2, [calls](ncclComm_t comm, int rank) {
      std::vector<int> x(4, 6);
      const ncclRedOp_t op = rank == 0 ? ncclSum : ncclAvg;
      good(ncclGroupStart());
      for (int i = 1; i < calls; ++i) {
        good(ncclAllReduce(&x[2], &x[2], 2, ncclInt32, op, comm, nullptr));
      }
      good(ncclAllReduce(&x[0], &x[0], 2, ncclInt32, op, comm, nullptr));
      bad(ncclGroupEnd(), ncclInvalidUsage, "for avg");
    });
  }
  with_comm(2, [](ncclComm_t comm, int rank) {
    int x = 6;
    bad(ncclAllReduce(&x, &x, 1, ncclInt32, rank == 0 ? ncclSum : ncclAvg, comm, nullptr),
        ncclInvalidUsage, "for avg");
  });
}

TEST(a_sum_beside_an_average_of_integers_is_an_error) { check_sum_beside_average(); }

TEST(a_sum_beside_an_average_of_integers_is_an_error_over_tcp) {
  const OverTcp apart;
  check_sum_beside_average();
}

// A factor is each rank's own affair, also that of one.
TEST(a_sum_with_a_factor_beside_one_without) {
  with_comm(2, [](ncclComm_t comm, int rank) {
    int x = 6, factor = 3;
    ncclRedOp_t op = ncclSum;
    if (rank == 0) {
      good(ncclRedOpCreatePreMulSum(&op, &factor, ncclInt32, ncclScalarHostImmediate, comm));
    }
    good(ncclAllReduce(&x, &x, 1, ncclInt32, op, comm, nullptr));
    CHECK(x == 24);
  });
}

TEST(a_message_of_another_length_makes_its_group_fail) {
  with_comm(2, [](ncclComm_t comm, int rank) {
    std::vector<int> x(8), y(8, rank);
    good(ncclGroupStart());
    good(ncclSend(y.data(), 4, ncclInt32, 1 - rank, comm, nullptr));
    good(ncclRecv(x.data(), rank == 0 ? 4 : 8, ncclInt32, 1 - rank, comm, nullptr));
    if (rank == 0) return good(ncclGroupEnd());
    bad(ncclGroupEnd(), ncclInvalidUsage, "sent 4");
  });
  with_comm(2, [](ncclComm_t comm, int rank) {
    std::vector<int> x(8), y(8, rank);
    good(ncclGroupStart());
    good(ncclSend(y.data(), 4, ncclInt32, 1 - rank, comm, nullptr));
    good(ncclRecv(x.data(), rank == 0 ? 4 : 3, ncclInt32, 1 - rank, comm, nullptr));
    if (rank == 0) {
      good(ncclGroupEnd());
    } else {
      bad(ncclGroupEnd(), ncclInvalidUsage, "room for 3");
    }
    CHECK(sum_over(comm, 1) == 2);
  });
}

void sum_in_group(const std::vector<ncclComm_t>& comms) {
  std::vector<int> values(comms.size());
  std::iota(values.begin(), values.end(), 1);
  const int wanted = std::accumulate(values.begin(), values.end(), 0);
  good(ncclGroupStart());
  for (std::size_t i = 0; i < comms.size(); ++i) {
    good(ncclAllReduce(&values[i], &values[i], 1, ncclInt32, ncclSum, comms[i], nullptr));
  }
  good(ncclGroupEnd());
  for (const int value : values) CHECK(value == wanted);
}

TEST(all_ranks_of_one_thread) {
  std::vector<ncclComm_t> comms(3);
  const int devices[3] = {4, 5, 5};
  good(ncclCommInitAll(comms.data(), 3, devices));
  for (int i = 0; i < 3; ++i) {
    int rank = -1, ranks = -1, device = -1;
    good(ncclCommUserRank(comms[static_cast<std::size_t>(i)], &rank));
    good(ncclCommCount(comms[static_cast<std::size_t>(i)], &ranks));
    good(ncclCommCuDevice(comms[static_cast<std::size_t>(i)], &device));
    CHECK(rank == i && ranks == 3 && device == devices[i]);
  }
  sum_in_group(comms);
  sum_in_group(comms);
  // A fork has the communicators, and none of their threads: it gets rid of them at once.
  check::Child fork([&] {
    int x = 0;
    bad(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, comms[1], nullptr), ncclInvalidArgument, "");
    for (ncclComm_t comm : comms) good(ncclCommDestroy(comm));
  });
  CHECK(fork.wait() == 0);
  sum_in_group(comms);
  for (ncclComm_t comm : comms) good(ncclCommDestroy(comm));
}

// The other ranks of the thread would wait for ever for one that has not begun.
TEST(a_rank_that_fails_ends_the_others_of_its_thread) {
  std::vector<ncclComm_t> comms(3);
  good(ncclCommInitAll(comms.data(), 3, nullptr));
  std::vector<int> x(6, 1);
  good(ncclGroupStart());
  for (std::size_t i = 0; i < 3; ++i) {
    int* const out = i == 1 ? &x[3] : &x[2 * i];  // of one they overlap, and are not the same
    good(ncclAllReduce(&x[2 * i], out, 2, ncclInt32, ncclSum, comms[i], nullptr));
  }
  const ncclResult_t result = ncclGroupEnd();
  CHECK(result == ncclRemoteError || result == ncclInvalidArgument);
  for (ncclComm_t comm : comms) good(ncclCommAbort(comm));
}

// Two processes of two ranks each, that are made and split in groups.
TEST(several_ranks_of_one_thread_in_several_processes) {
  in_processes(2, [](int process, Board& board) {
    const ncclUniqueId id = id_of(board, process);
    std::vector<ncclComm_t> comms(2), parts(2);
    good(ncclGroupStart());
    for (int i = 0; i < 2; ++i) {
      good(ncclCommInitRank(&comms[static_cast<std::size_t>(i)], 4, id, 2 * process + i));
    }
    good(ncclGroupEnd());
    std::vector<int> values = {1, 10};
    good(ncclGroupStart());
    for (std::size_t i = 0; i < 2; ++i) {
      good(ncclAllReduce(&values[i], &values[i], 1, ncclInt32, ncclSum, comms[i], nullptr));
    }
    good(ncclGroupEnd());
    CHECK(values[0] == 22 && values[1] == 22);
    good(ncclGroupStart());
    for (std::size_t i = 0; i < 2; ++i)
      good(ncclCommSplit(comms[i], process, 0, &parts[i], nullptr));
    good(ncclGroupEnd());
    sum_in_group(parts);
    for (ncclComm_t comm : parts) good(ncclCommDestroy(comm));
    for (ncclComm_t comm : comms) good(ncclCommDestroy(comm));
  });
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// How communicators of libnccl.so.2 begin, are divided, fail and end.
#include <chrono>
#include <cstddef>
#include <cstring>
#include <thread>

#include "instrumented.h"
#include "ranks.h"

namespace {

using namespace nccl_test;
using Clock = std::chrono::steady_clock;

constexpr double kAtOnce = check::kShort ? 20 : 1;  // seconds

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

TEST(version_and_texts) {
  int version = 0;
  good(ncclGetVersion(&version));
  CHECK(version == NCCL_VERSION_CODE);
  for (int result = 0; result < ncclNumResults; ++result) {
    CHECK(std::strlen(ncclGetErrorString(static_cast<ncclResult_t>(result))) > 4);
  }
  CHECK(std::string(ncclGetErrorString(static_cast<ncclResult_t>(99))) == "unknown result code");
  bad(ncclGetVersion(nullptr), ncclInvalidArgument, "version");
  good(ncclCommDestroy(nullptr));
  good(ncclCommAbort(nullptr));
}

TEST(ids_are_of_this_library_and_ranks_in_their_range) {
  in_processes(1, [](int, Board&) {
    ncclComm_t comm = nullptr;
    ncclUniqueId foreign;
    std::memset(&foreign, 7, sizeof foreign);
    bad(ncclCommInitRank(&comm, 2, foreign, 0), ncclInvalidArgument, "unique id");
    ncclUniqueId id;
    good(ncclGetUniqueId(&id));
    bad(ncclCommInitRank(&comm, 2, id, 2), ncclInvalidArgument, "rank 2 of 2");
    bad(ncclCommInitRank(nullptr, 2, id, 0), ncclInvalidArgument, "comm");
    CHECK(comm == nullptr);
  });
}

// The process that made the id is rank 1, and hands it on.
TEST(any_rank_may_have_made_the_id) {
  in_processes(2, [](int process, Board& board) {
    ncclComm_t comm = nullptr;
    ncclUniqueId id = id_of(board, process);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.commName = "reversed";
    good(ncclCommInitRankScalable(&comm, 2, 1 - process, 1, &id, &config));
    CHECK(sum_over(comm, 1) == 2);
    good(ncclCommFinalize(comm));
    int x = 0;
    bad(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, comm, nullptr), ncclInvalidArgument,
        "finalized");
    good(ncclCommDestroy(comm));
  });
}

TEST(ranks_that_disagree_do_not_meet) {
  in_processes(2, [](int rank, Board& board) {
    ncclComm_t comm = nullptr;
    const ncclResult_t result = ncclCommInitRank(&comm, 2 + rank, id_of(board, rank), rank);
    bad(result, ncclSystemError, "with one unique id");
    CHECK(comm == nullptr);
    board.step.fetch_add(1);
    wait_for(board.step, 2);  // rank 0 serves the meeting
  });
}

// Two wait for a fourth rank, which never comes, when the third one dies.
TEST(a_death_at_the_meeting_is_told_at_once) {
  in_processes(3, [](int rank, Board& board) {
    const ncclUniqueId id = id_of(board, rank);
    ncclComm_t comm = nullptr;
    if (rank == 1) {
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      CHECK(ncclCommInitRankConfig(&comm, 4, id, rank, &config) == ncclInProgress);
      check::nap(200);
      std::_Exit(0);
    }
    const auto begin = Clock::now();
    bad(ncclCommInitRank(&comm, 4, id, rank), ncclSystemError, "rank 1 came to meet the others");
    CHECK(seconds_since(begin) < 5 * kAtOnce);
    board.step.fetch_add(1);
    if (rank == 0) wait_for(board.step, 2);  // it serves the meeting
  });
}

// ---- configs ------------------------------------------------------------------------------------

TEST(configs_of_other_versions) {
  in_processes(1, [](int, Board&) {
    ncclUniqueId id;
    ncclComm_t comm = nullptr;
    good(ncclGetUniqueId(&id));
    ncclConfig_t config;
    std::memset(&config, 0, sizeof config);
    bad(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInvalidArgument,
        "NCCL_CONFIG_INITIALIZER");
    config = NCCL_CONFIG_INITIALIZER;
    config.magic = 5;
    bad(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInvalidArgument, "not initialised");
    config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 2;
    bad(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInvalidArgument, "blocking is 2");
    // What an older program does not know lies behind its struct.
    std::memset(&config, 0x55, sizeof config);
    config.size = offsetof(ncclConfig_t, cgaClusterSize);
    config.magic = NCCL_API_MAGIC;
    config.version = 21400;
    config.blocking = 1;
    good(ncclCommInitRankConfig(&comm, 1, id, 0, &config));
    good(ncclCommDestroy(comm));
  });
}

ncclResult_t awaited(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  const auto begin = Clock::now();
  while (state == ncclInProgress && seconds_since(begin) < 20) {
    good(ncclCommGetAsyncError(comm, &state));
  }
  return state;
}

TEST(communicators_that_do_not_block) {
  in_processes(2, [](int rank, Board& board) {
    const ncclUniqueId id = id_of(board, rank);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr, part = nullptr;
    if (rank == 1) wait_for(board.step, 1);
    CHECK(ncclCommInitRankConfig(&comm, 2, id, rank, &config) == ncclInProgress);
    if (rank == 0) {
      ncclResult_t state = ncclSuccess;
      good(ncclCommGetAsyncError(comm, &state));
      CHECK(state == ncclInProgress);  // the other one waits for us
      int x = 0;
      bad(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, comm, nullptr), ncclInvalidArgument,
          "ncclCommGetAsyncError");
      board.step = 1;
    }
    good(awaited(comm));
    int x = rank + 1;
    CHECK(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, comm, nullptr) == ncclInProgress);
    good(awaited(comm));
    CHECK(x == 3);
    CHECK(ncclCommSplit(comm, 0, -rank, &part, nullptr) == ncclInProgress);
    good(awaited(part));
    good(awaited(comm));
    int of_part = -1;
    good(ncclCommUserRank(part, &of_part));
    CHECK(of_part == 1 - rank);
    good(ncclCommDestroy(part));
    good(ncclCommDestroy(comm));
  });
}

// What ends one call, and not the communicator, is told once; the calls that follow go on.
TEST(a_call_that_fails_alone_where_calls_do_not_block) {
  in_processes(2, [](int rank, Board& board) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr;
    CHECK(ncclCommInitRankConfig(&comm, 2, id_of(board, rank), rank, &config) == ncclInProgress);
    good(awaited(comm));
    std::vector<int> x(8, 1);
    for (const std::size_t count : {3U, 5U}) {
      const ncclResult_t begun = rank == 0 ? ncclSend(x.data(), 4, ncclInt32, 1, comm, nullptr)
                                           : ncclRecv(x.data(), count, ncclInt32, 0, comm, nullptr);
      CHECK(begun == ncclInProgress);
      if (rank == 0) {
        good(awaited(comm));
      } else {
        bad(awaited(comm), ncclInvalidUsage, count == 3 ? "room for 3" : "sent 4");
        good(awaited(comm));
      }
      int y = 1;
      CHECK(ncclAllReduce(&y, &y, 1, ncclInt32, ncclSum, comm, nullptr) == ncclInProgress);
      good(awaited(comm));
      CHECK(y == 2);
    }
    // What ends the communicator stays.
    CHECK(ncclAllReduce(x.data(), x.data(), rank == 0 ? 8 : 4, ncclInt32, ncclSum, comm, nullptr) ==
          ncclInProgress);
    bad(awaited(comm), ncclInvalidUsage, "8 int32");
    bad(awaited(comm), ncclInvalidUsage, "8 int32");
    bad(ncclAllReduce(x.data(), x.data(), 1, ncclInt32, ncclSum, comm, nullptr), ncclInvalidUsage,
        "failed before");
    good(ncclCommDestroy(comm));
  });
}

// ---- groups of ranks ---------------------------------------------------------------------------

void check_split(ncclComm_t comm, int rank) {
  ncclComm_t part = nullptr;
  good(ncclCommSplit(comm, rank % 2, -rank, &part, nullptr));
  int of_part = -1;
  good(ncclCommUserRank(part, &of_part));
  CHECK(ranks_of(part) == (rank == 1 ? 1 : 2) && of_part == (rank == 0 ? 1 : 0));
  CHECK(sum_over(part, rank) == (rank == 1 ? 1 : 2));
  good(ncclCommDestroy(part));
  good(ncclCommSplit(comm, rank == 0 ? NCCL_SPLIT_NOCOLOR : 3, 0, &part, nullptr));
  CHECK((part == nullptr) == (rank == 0));
  if (rank == 0) return;
  CHECK(sum_over(part, rank) == 3);
  good(ncclCommDestroy(part));
}

void check_shrink(ncclComm_t comm, int rank) {
  int out = 1;
  if (rank != 1) {
    ncclComm_t left = nullptr;
    good(ncclCommShrink(comm, &out, 1, &left, nullptr, NCCL_SHRINK_DEFAULT));
    CHECK(ranks_of(left) == 2 && sum_over(left, rank) == 2);
    good(ncclCommDestroy(left));
  } else {
    ncclComm_t left = nullptr;
    bad(ncclCommShrink(comm, &out, 1, &left, nullptr, NCCL_SHRINK_DEFAULT), ncclInvalidArgument,
        "excludeRanksList");
  }
  CHECK(sum_over(comm, rank) == 3);  // all go on
}

TEST(split_and_shrink) {
  with_comm(3, [](ncclComm_t comm, int rank) {
    check_split(comm, rank);
    check_shrink(comm, rank);
  });
}

TEST(split_and_shrink_over_tcp) {
  const OverTcp apart;
  with_comm(3, [](ncclComm_t comm, int rank) {
    check_split(comm, rank);
    check_shrink(comm, rank);
  });
}

// ---- faults ------------------------------------------------------------------------------------

void check_death() {
  in_processes(3, [](int rank, Board& board) {
    ncclComm_t comm = nullptr;
    good(ncclCommInitRank(&comm, 3, id_of(board, rank), rank));
    CHECK(sum_over(comm, 1) == 3);
    if (rank == 1) std::_Exit(0);
    const auto begin = Clock::now();
    int x = 0;
    bad(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, comm, nullptr), ncclRemoteError, "rank 1");
    CHECK(seconds_since(begin) < kAtOnce);
    ncclResult_t state = ncclSuccess;
    good(ncclCommGetAsyncError(comm, &state));
    CHECK(state == ncclRemoteError);
    bad(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, comm, nullptr), ncclRemoteError, "before");
    int out = 1;
    ncclComm_t left = nullptr;
    good(ncclCommShrink(comm, &out, 1, &left, nullptr, NCCL_SHRINK_ABORT));
    CHECK(ranks_of(left) == 2 && sum_over(left, 5) == 10);
    good(ncclCommDestroy(left));
    good(ncclCommAbort(comm));
  });
}

TEST(a_rank_dies) { check_death(); }

TEST(a_rank_dies_over_tcp) {
  const OverTcp apart;
  check_death();
}

// Who made the id ends as soon as it has joined: the others hear what they meet for.
TEST(the_rank_that_made_the_id_leaves_at_once) {
  const OverTcp apart;
  for (int i = 0; i < 20; ++i) {
    in_processes(4, [](int rank, Board& board) {
      ncclComm_t comm = nullptr;
      good(ncclCommInitRank(&comm, 4, id_of(board, rank), rank));
      if (rank == 0) std::_Exit(0);
      board.step.fetch_add(1);
      wait_for(board.step, 3);
      good(ncclCommAbort(comm));
    });
  }
}

TEST(abort_unblocks) {
  in_processes(2, [](int rank, Board& board) {
    ncclComm_t comm = nullptr;
    good(ncclCommInitRank(&comm, 2, id_of(board, rank), rank));
    if (rank == 1) {
      wait_for(board.step, 1);
      good(ncclCommDestroy(comm));
      return;
    }
    int x = 0;
    ncclResult_t result = ncclSuccess;
    std::thread blocked(
        [&] { result = ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, comm, nullptr); });
    check::nap(50);
    const auto begin = Clock::now();
    good(ncclCommAbort(comm));
    blocked.join();
    CHECK(result == ncclRemoteError && seconds_since(begin) < kAtOnce);
    board.step = 1;
  });
}

// Also a rank that waits for the others to come.
TEST(abort_unblocks_a_meeting) {
  in_processes(1, [](int, Board&) {
    ncclUniqueId id;
    good(ncclGetUniqueId(&id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr;
    CHECK(ncclCommInitRankConfig(&comm, 2, id, 0, &config) == ncclInProgress);
    const auto begin = Clock::now();
    good(ncclCommAbort(comm));
    CHECK(seconds_since(begin) < kAtOnce);
  });
}

TEST(counts_that_differ_are_an_error) {
  with_comm(2, [](ncclComm_t comm, int rank) {
    std::vector<int> x(8);
    bad(ncclAllReduce(x.data(), x.data(), rank == 0 ? 8 : 4, ncclInt32, ncclSum, comm, nullptr),
        ncclInvalidUsage, "8 int32");
  });
  with_comm(2, [](ncclComm_t comm, int rank) {
    std::vector<int> x(8);
    if (rank == 0) return good(ncclSend(x.data(), 4, ncclInt32, 1, comm, nullptr));
    bad(ncclRecv(x.data(), 8, ncclInt32, 0, comm, nullptr), ncclInvalidUsage, "sent 4");
  });
}

// Of a message: it lives on.
TEST(receives_of_another_count_are_an_error) {
  with_comm(2, [](ncclComm_t comm, int rank) {
    std::vector<int> x(8);
    for (const std::size_t count : {3U, 5U}) {
      if (rank == 0) {
        good(ncclSend(x.data(), 4, ncclInt32, 1, comm, nullptr));
        continue;
      }
      bad(ncclRecv(x.data(), count, ncclInt32, 0, comm, nullptr), ncclInvalidUsage,
          count == 3 ? "room for 3" : "sent 4");
      ncclResult_t state = ncclInProgress;
      good(ncclCommGetAsyncError(comm, &state));
      good(state);
    }
    CHECK(sum_over(comm, 1) == 2);
  });
}

// ---- memory
// --------------------------------------------------------------------------------------

TEST(memory_and_registration) {
  with_comm(1, [](ncclComm_t comm, int) {
    void *data = nullptr, *handle = nullptr;
    good(ncclMemAlloc(&data, 5000));
    std::memset(data, 1, 5000);
    good(ncclCommRegister(comm, data, 5000, &handle));
    good(ncclAllReduce(data, data, 5000, ncclUint8, ncclSum, comm, nullptr));
    good(ncclCommDeregister(comm, handle));
    bad(ncclCommDeregister(comm, handle), ncclInvalidArgument, "handle");
    bad(ncclCommDeregister(comm, nullptr), ncclInvalidArgument, "handle");
    int unknown = 0;
    bad(ncclCommDeregister(comm, &unknown), ncclInvalidArgument, "handle");
    void* others = nullptr;
    ncclComm_t other = nullptr;
    good(ncclCommInitAll(&other, 1, nullptr));
    good(ncclCommRegister(other, data, 5000, &others));
    bad(ncclCommDeregister(comm, others), ncclInvalidArgument, "handle");
    good(ncclCommDeregister(other, others));
    good(ncclCommRegister(other, data, 5000, &others));
    good(ncclCommDestroy(other));
    bad(ncclMemAlloc(nullptr, 1), ncclInvalidArgument, "ptr");
    good(ncclMemFree(data));
  });
}

}  // namespace

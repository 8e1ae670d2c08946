// SPDX-License-Identifier: Apache-2.0
// Communicators of libnccl.so.2 that grow, are revoked or suspended; what groups would take.
#include <chrono>
#include <thread>

#include "instrumented.h"
#include "ranks.h"

namespace {

using namespace nccl_test;

int rank_in(ncclComm_t comm) {
  int rank = -1;
  good(ncclCommUserRank(comm, &rank));
  return rank;
}

// ---- grow -----------------------------------------------------------------------------------

// Two ranks; rank 1 has the id. Then a third and a fourth process come.
void check_growth() {
  struct Growing {
    std::atomic<int> ready{0};
    ncclUniqueId id;
  };
  const Shared<Growing> growing;
  in_processes(4, [&](int process, Board& board) {
    ncclComm_t comm = nullptr, grown = nullptr;
    if (process < 2) {
      good(ncclCommInitRank(&comm, 2, id_of(board, process), process));
      if (process == 1) {
        good(ncclCommGetUniqueId(comm, &growing->id));
        ncclUniqueId second;
        bad(ncclCommGetUniqueId(comm, &second), ncclInvalidUsage, "has used");
        growing->ready = 1;
      }
      good(ncclCommGrow(comm, 4, process == 1 ? &growing->id : nullptr, -1, &grown, nullptr));
    } else {
      wait_for(growing->ready, 1);
      good(ncclCommGrow(nullptr, 4, &growing->id, process, &grown, nullptr));
    }
    CHECK(ranks_of(grown) == 4 && rank_in(grown) == process);
    CHECK(sum_over(grown, process) == 6);
    if (comm != nullptr) {
      CHECK(sum_over(comm, 1) == 2);  // it lives on
      ncclUniqueId next;
      if (process == 1) good(ncclCommGetUniqueId(comm, &next));  // the first was used
      good(ncclCommDestroy(comm));
    }
    good(ncclCommDestroy(grown));
  });
}

TEST(a_communicator_grows) { check_growth(); }

TEST(a_communicator_grows_over_tcp) {
  const OverTcp apart;
  check_growth();
}

TEST(growing_that_makes_no_sense) {
  with_comm(2, [](ncclComm_t comm, int) {
    ncclComm_t grown = nullptr;
    ncclUniqueId id;
    good(ncclCommGetUniqueId(comm, &id));
    bad(ncclCommGrow(comm, 2, &id, -1, &grown, nullptr), ncclInvalidArgument, "there already");
    bad(ncclCommGrow(comm, 3, &id, 0, &grown, nullptr), ncclInvalidArgument, "-1");
    bad(ncclCommGrow(nullptr, 3, nullptr, 2, &grown, nullptr), ncclInvalidArgument, "uniqueId");
    bad(ncclCommGrow(nullptr, 3, &id, 3, &grown, nullptr), ncclInvalidArgument, "rank 3 of 3");
    bad(ncclCommGrow(comm, 3, &id, -1, nullptr, nullptr), ncclInvalidArgument, "newcomm");
    ncclUniqueId second;
    bad(ncclCommGetUniqueId(comm, &second), ncclInvalidUsage, "has used");
    // Both are roots; then none is.
    bad(ncclCommGrow(comm, 3, &id, -1, &grown, nullptr), ncclInvalidUsage, "2 of the ranks");
    bad(ncclCommGrow(comm, 3, nullptr, -1, &grown, nullptr), ncclInvalidUsage, "0 of the ranks");
    CHECK(grown == nullptr && sum_over(comm, 1) == 2);
    good(ncclCommGetUniqueId(comm, &id));  // that one was tried
  });
}

// The old communicator is in progress until its ranks have the id, and may go then.
TEST(growing_without_blocking) {
  struct Growing {
    std::atomic<int> ready{0};
    ncclUniqueId id;
  };
  const Shared<Growing> growing;
  in_processes(3, [&](int process, Board& board) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr, grown = nullptr;
    const auto finish_of = [](ncclComm_t of) {
      ncclResult_t state = ncclInProgress;
      for (int i = 0; i < 20'000 && state == ncclInProgress; ++i) {
        good(ncclCommGetAsyncError(of, &state));
        check::nap(1);
      }
      good(state);
    };
    if (process == 2) {
      wait_for(growing->ready, 1);
      check::nap(100);  // the others wait for this one when their old communicator is gone
      CHECK(ncclCommGrow(nullptr, 3, &growing->id, 2, &grown, &config) == ncclInProgress);
    } else {
      CHECK(ncclCommInitRankConfig(&comm, 2, id_of(board, process), process, &config) ==
            ncclInProgress);
      finish_of(comm);
      if (process == 0) {
        good(ncclCommGetUniqueId(comm, &growing->id));
        growing->ready = 1;
      }
      CHECK(ncclCommGrow(comm, 3, process == 0 ? &growing->id : nullptr, -1, &grown, nullptr) ==
            ncclInProgress);
      good(ncclCommDestroy(comm));
    }
    finish_of(grown);
    CHECK(ranks_of(grown) == 3);
    good(ncclCommDestroy(grown));
  });
}

// ---- revoke ---------------------------------------------------------------------------------

// Rank 0 waits in a collective that nobody else joins; all revoke, then go on in parts.
void check_revoke(bool over_tcp) {
  in_processes(3, [&](int rank, Board& board) {
    ncclComm_t comm = nullptr;
    good(ncclCommInitRank(&comm, 3, id_of(board, rank), rank));
    CHECK(sum_over(comm, 1) == 3);
    int x = 0;
    ncclResult_t result = ncclSuccess;
    std::thread blocked;
    if (rank == 0) {
      blocked = std::thread(
          [&] { result = ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, comm, nullptr); });
      check::nap(50);
    }
    good(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));
    if (rank == 0) {
      blocked.join();
      CHECK(result == ncclRemoteError);
    }
    ncclResult_t state = ncclInProgress;
    good(ncclCommGetAsyncError(comm, &state));
    CHECK(state == ncclSuccess);
    good(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));  // again: nothing to do
    bad(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, comm, nullptr), ncclInvalidUsage, "revoked");
    bad(ncclCommFinalize(comm), ncclInvalidUsage, "revoked");
    ncclComm_t part = nullptr;
    for (int twice = 0; twice < 2; ++twice) {
      good(ncclCommSplit(comm, rank == 2 ? 1 : 0, 0, &part, nullptr));
      CHECK(ranks_of(part) == (rank == 2 ? 1 : 2));
      CHECK(sum_over(part, rank + 1) == 3);
      good(ncclCommDestroy(part));
    }
    int out = 1;
    if (rank != 1) {
      good(ncclCommShrink(comm, &out, 1, &part, nullptr, NCCL_SHRINK_DEFAULT));
      CHECK(sum_over(part, rank) == 2);
      good(ncclCommDestroy(part));
    } else if (over_tcp) {
      wait_for(board.step, 2);  // its connections live until the others have met
    }
    board.step.fetch_add(1);
    good(ncclCommDestroy(comm));
  });
}

TEST(revoked_communicators_can_be_split_and_shrunk) { check_revoke(false); }

TEST(revoked_communicators_can_be_split_and_shrunk_over_tcp) {
  const OverTcp apart;
  check_revoke(true);
}

// The old communicator may be destroyed as soon as the call returns.
void check_shrink_without_blocking() {
  in_processes(3, [](int rank, Board& board) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr, left = nullptr;
    good(ncclCommInitRank(&comm, 3, id_of(board, rank), rank));
    int out = 1;
    if (rank != 1) {
      const ncclResult_t begun = ncclCommShrink(comm, &out, 1, &left, &config, NCCL_SHRINK_DEFAULT);
      CHECK(begun == ncclInProgress);
      good(ncclCommDestroy(comm));
      ncclResult_t state = ncclInProgress;
      for (int i = 0; i < 20'000 && state == ncclInProgress; ++i) {
        good(ncclCommGetAsyncError(left, &state));
        check::nap(1);
      }
      good(state);
      CHECK(ranks_of(left) == 2);
      good(ncclCommDestroy(left));
    } else {
      wait_for(board.step, 2);  // its connections live until the others have met
      good(ncclCommDestroy(comm));
    }
    board.step.fetch_add(1);
  });
}

TEST(shrinking_without_blocking) { check_shrink_without_blocking(); }

TEST(shrinking_without_blocking_over_tcp) {
  const OverTcp apart;
  check_shrink_without_blocking();
}

TEST(nothing_is_destroyed_that_an_open_group_needs) {
  with_comm(2, [](ncclComm_t comm, int rank) {
    int x = 0, out = 1 - rank;
    ncclComm_t alone = nullptr;
    good(ncclGroupStart());
    good(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, comm, nullptr));
    bad(ncclCommDestroy(comm), ncclInvalidUsage, "has not ended");
    good(ncclGroupEnd());
    good(ncclGroupStart());
    good(ncclCommShrink(comm, &out, 1, &alone, nullptr, NCCL_SHRINK_DEFAULT));
    bad(ncclCommAbort(comm), ncclInvalidUsage, "has not ended");
    bad(ncclCommAbort(alone), ncclInvalidUsage, "has not ended");
    good(ncclGroupEnd());
    CHECK(ranks_of(alone) == 1);
    good(ncclCommDestroy(alone));
  });
}

TEST(revoking_after_a_death_and_shrinking) {
  in_processes(3, [](int rank, Board& board) {
    ncclComm_t comm = nullptr, left = nullptr;
    good(ncclCommInitRank(&comm, 3, id_of(board, rank), rank));
    CHECK(sum_over(comm, 1) == 3);
    if (rank == 1) std::_Exit(0);
    int x = 0, out = 1;
    bad(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, comm, nullptr), ncclRemoteError, "rank 1");
    good(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));
    good(ncclCommShrink(comm, &out, 1, &left, nullptr, NCCL_SHRINK_DEFAULT));
    CHECK(ranks_of(left) == 2 && sum_over(left, 5) == 10);
    good(ncclCommDestroy(left));
    good(ncclCommAbort(comm));
  });
}

TEST(revoking_that_makes_no_sense) {
  with_comm(1, [](ncclComm_t comm, int) {
    bad(ncclCommRevoke(comm, 1), ncclInvalidArgument, "revokeFlags");
    bad(ncclCommRevoke(nullptr, 0), ncclInvalidArgument, "null pointer");
    good(ncclCommFinalize(comm));
    bad(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT), ncclInvalidUsage, "finalized");
  });
}

// ---- suspend --------------------------------------------------------------------------------

TEST(suspended_communicators_wait_to_be_resumed) {
  with_comm(2, [](ncclComm_t comm, int) {
    uint64_t bytes = 7;
    good(ncclCommMemStats(comm, ncclStatGpuMemTotal, &bytes));
    CHECK(bytes == 0);
    bad(ncclCommResume(comm), ncclInvalidUsage, "not suspended");
    bad(ncclCommSuspend(comm, 0), ncclInvalidArgument, "flags are 0");
    good(ncclCommSuspend(comm, NCCL_SUSPEND_MEM));
    good(ncclCommMemStats(comm, ncclStatGpuMemSuspended, &bytes));
    CHECK(bytes == 1);
    int x = 0;
    bad(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, comm, nullptr), ncclInvalidUsage, "resume");
    bad(ncclCommSuspend(comm, NCCL_SUSPEND_MEM), ncclInvalidUsage, "before");
    ncclComm_t part = nullptr;
    bad(ncclCommSplit(comm, 0, 0, &part, nullptr), ncclInvalidUsage, "resume");
    good(ncclCommResume(comm));
    CHECK(sum_over(comm, 1) == 2);
    bad(ncclCommMemStats(comm, static_cast<ncclCommMemStat_t>(9), &bytes), ncclInvalidArgument,
        "stat is 9");
  });
}

// ---- simulated groups -----------------------------------------------------------------------

float microseconds_of(ncclComm_t comm, std::size_t count, int calls) {
  std::vector<float> x(count);
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  good(ncclGroupStart());
  for (int i = 0; i < calls; ++i) {
    good(ncclAllReduce(x.data(), x.data(), count, ncclFloat32, ncclSum, comm, nullptr));
  }
  good(ncclGroupSimulateEnd(&info));
  return info.estimatedTime;
}

TEST(what_a_group_would_take) {
  with_comm(2, [](ncclComm_t comm, int rank) {
    const float small = microseconds_of(comm, 2, 1), large = microseconds_of(comm, 1 << 20, 1);
    CHECK(small > 0.01F && small < 100 && large > 20 * small && large < 1e5F);
    CHECK(microseconds_of(comm, 1 << 20, 3) > 2 * large);
    CHECK(microseconds_of(comm, 2, 0) == 0);
    std::vector<float> x(1000);
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    good(ncclGroupStart());
    good(rank == 0 ? ncclSend(x.data(), 1000, ncclFloat32, 1, comm, nullptr)
                   : ncclRecv(x.data(), 1000, ncclFloat32, 0, comm, nullptr));
    good(ncclAllGather(x.data(), x.data(), 500, ncclFloat32, comm, nullptr));
    good(ncclGroupSimulateEnd(&info));
    CHECK(info.estimatedTime > small);
    CHECK(sum_over(comm, 1) == 2);  // nothing of it was begun
  });
}

TEST(what_a_group_would_take_is_not_always_known) {
  const OverTcp apart;
  with_comm(2, [](ncclComm_t comm, int) {
    CHECK(microseconds_of(comm, 2, 1) == NCCL_UNDEF_FLOAT);
    ncclSimInfo_t raw{};
    good(ncclGroupStart());
    bad(ncclGroupSimulateEnd(&raw), ncclInvalidArgument, "NCCL_SIM_INFO_INITIALIZER");
    bad(ncclGroupSimulateEnd(&raw), ncclInvalidUsage, "without an ncclGroupStart");
  });
}

}  // namespace

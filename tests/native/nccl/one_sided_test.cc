// SPDX-License-Identifier: Apache-2.0
// Windows, puts and signals of libnccl.so.2.
#include <numeric>

#include "ranks.h"

namespace {

using namespace nccl_test;

using Ints = std::vector<int>;

constexpr std::size_t kShort = 10, kLong = 500'000;  // elements; the latter wait for their receiver

ncclWindow_t window_on(ncclComm_t comm, Ints& memory) {
  ncclWindow_t window = nullptr;
  good(ncclCommWindowRegister(comm, memory.data(), memory.size() * sizeof(int), &window,
                              NCCL_WIN_COLL_SYMMETRIC));
  void* data = nullptr;
  good(ncclWinGetUserPtr(comm, window, &data));
  CHECK(data == memory.data());
  return window;
}

void wait_for_signals(ncclComm_t comm, int count, int peer, int context = 0) {
  ncclWaitSignalDesc_t what{count, peer, 0, context};
  good(ncclWaitSignal(1, &what, comm, nullptr));
}

// Each puts its part into the memory of all, itself too, then waits for all.
void put_everywhere(ncclComm_t comm, int rank, int p, std::size_t n) {
  Ints memory(n * static_cast<std::size_t>(p), -1), own(n);
  const ncclWindow_t window = window_on(comm, memory);
  for (int round = 0; round < 3; ++round) {
    std::iota(own.begin(), own.end(), 1000 * rank + round);
    for (int peer = 0; peer < p; ++peer) {
      good(ncclPutSignal(own.data(), n, ncclInt32, peer, window,
                         static_cast<std::size_t>(rank) * n * sizeof(int), 0, 0, 0, comm, nullptr));
    }
    std::fill(own.begin(), own.end(), -7);  // what was put is free
    std::vector<ncclWaitSignalDesc_t> all;
    for (int peer = 0; peer < p; ++peer) all.push_back({1, peer, 0, 0});
    good(ncclWaitSignal(p, all.data(), comm, nullptr));
    for (std::size_t i = 0; i < memory.size(); ++i) {
      CHECK(memory[i] == 1000 * static_cast<int>(i / n) + round + static_cast<int>(i % n));
    }
    int nothing = 0;  // nobody puts into memory that another one still looks at
    good(ncclAllReduce(&nothing, &nothing, 1, ncclInt32, ncclSum, comm, nullptr));
  }
  good(ncclCommWindowDeregister(comm, window));
  bad(ncclCommWindowDeregister(comm, window), ncclInvalidArgument, "deregistered");
}

TEST(puts_of_all_to_all) {
  for (const std::size_t n : {kShort, kLong}) {
    with_comm(3, [n](ncclComm_t comm, int rank) { put_everywhere(comm, rank, 3, n); });
  }
}

TEST(puts_of_all_to_all_over_tcp) {
  const OverTcp apart;
  for (const std::size_t n : {kShort, kLong}) {
    with_comm(3, [n](ncclComm_t comm, int rank) { put_everywhere(comm, rank, 3, n); });
  }
}

// Signals of other contexts and ranks may come first; several are waited for at once.
TEST(signals_are_counted_by_rank_and_context) {
  with_comm(3, [](ncclComm_t comm, int rank) {
    if (rank != 0) {
      for (int i = 0; i < 3; ++i) good(ncclSignal(0, 0, 1, 0, comm, nullptr));
      good(ncclSignal(0, 0, 0, 0, comm, nullptr));
      return wait_for_signals(comm, 1, 0);
    }
    wait_for_signals(comm, 1, 2, 0);
    wait_for_signals(comm, 3, 2, 1);
    wait_for_signals(comm, 2, 1, 1);
    wait_for_signals(comm, 1, 1, 1);
    wait_for_signals(comm, 1, 1, 0);
    good(ncclGroupStart());
    good(ncclSignal(1, 0, 0, 0, comm, nullptr));
    good(ncclSignal(2, 0, 0, 0, comm, nullptr));
    good(ncclGroupEnd());
  });
}

// Neither waits before both have put: what does not fit on the way goes on while they wait.
TEST(puts_and_waits_of_a_group) {
  with_comm(2, [](ncclComm_t comm, int rank) {
    Ints memory(kLong), own(kLong, rank + 1);
    const ncclWindow_t window = window_on(comm, memory);
    ncclWaitSignalDesc_t what{1, 1 - rank, 0, 0};
    good(ncclGroupStart());
    good(ncclPutSignal(own.data(), kLong, ncclInt32, 1 - rank, window, 0, 0, 0, 0, comm, nullptr));
    good(ncclWaitSignal(1, &what, comm, nullptr));
    good(ncclGroupEnd());
    CHECK(memory.front() == 2 - rank && memory.back() == 2 - rank);
  });
}

// Who puts last and leaves still hands over what it has put.
TEST(what_was_put_arrives_after_its_sender_has_left) {
  with_comm(2, [](ncclComm_t comm, int rank) {
    Ints memory(rank == 0 ? kLong : 0), own(kLong, 5);
    const ncclWindow_t window = window_on(comm, memory);
    if (rank == 1) {
      return good(
          ncclPutSignal(own.data(), kLong, ncclInt32, 0, window, 0, 0, 0, 0, comm, nullptr));
    }
    check::nap(100);
    wait_for_signals(comm, 1, 1);
    CHECK(memory.front() == 5 && memory.back() == 5);
  });
}

// A long put goes on while its sender waits for something else.
void check_put_moves_on() {
  in_processes(2, [](int rank, Board& board) {
    ncclComm_t comm = nullptr;
    good(ncclCommInitRank(&comm, 2, id_of(board, rank), rank));
    Ints memory(rank == 0 ? kLong : 0), own(kLong, 5);
    const ncclWindow_t window = window_on(comm, memory);
    for (int round = 1; round <= 3; ++round) {
      if (rank == 1) {
        good(ncclPutSignal(own.data(), kLong, ncclInt32, 0, window, 0, 0, 0, 0, comm, nullptr));
        wait_for(board.step, round);
      } else {
        check::nap(20);
        wait_for_signals(comm, 1, 1);
        CHECK(memory.front() == 5 && memory.back() == 5);
        board.step = round;
      }
    }
    CHECK(sum_over(comm, rank) == 1);
    good(ncclCommDestroy(comm));
  });
}

TEST(a_put_moves_on_without_calls_of_its_sender) { check_put_moves_on(); }

TEST(a_put_moves_on_without_calls_of_its_sender_over_tcp) {
  const OverTcp apart;
  check_put_moves_on();
}

// Calls while the mover takes its turns: none is refused, no value is another one's.
TEST(calls_while_puts_are_under_way) {
  with_comm(2, [](ncclComm_t comm, int rank) {
    Ints memory(kLong), own(kLong, rank);
    const ncclWindow_t window = window_on(comm, memory);
    for (int round = 0; round < 20; ++round) {
      good(
          ncclPutSignal(own.data(), kLong, ncclInt32, 1 - rank, window, 0, 0, 0, 0, comm, nullptr));
      for (int i = 0; i < 20; ++i) CHECK(sum_over(comm, rank + i) == 1 + 2 * i);
      wait_for_signals(comm, 1, 1 - rank);
      CHECK(memory.front() == 1 - rank && memory.back() == 1 - rank);
      CHECK(sum_over(comm, 1) == 2);
    }
  });
}

// Revoked, or destroyed, with a put under way that nobody waits for.
TEST(ends_while_a_put_is_under_way) {
  for (const bool revoked : {false, true}) {
    in_processes(2, [revoked](int rank, Board& board) {
      ncclComm_t comm = nullptr;
      good(ncclCommInitRank(&comm, 2, id_of(board, rank), rank));
      Ints memory(kLong), own(kLong, rank);
      const ncclWindow_t window = window_on(comm, memory);
      good(
          ncclPutSignal(own.data(), kLong, ncclInt32, 1 - rank, window, 0, 0, 0, 0, comm, nullptr));
      board.step.fetch_add(1);
      wait_for(board.step, 2);
      if (revoked) {
        good(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));
        ncclComm_t part = nullptr;
        good(ncclCommSplit(comm, 0, 0, &part, nullptr));
        CHECK(sum_over(part, rank) == 1);
        good(ncclCommDestroy(part));
      }
      good(ncclCommAbort(comm));
    });
  }
}

TEST(windows_of_unequal_sizes_are_kept_to) {
  with_comm(2, [](ncclComm_t comm, int rank) {
    Ints memory(rank == 0 ? 4 : 8), own(8, 3);
    const ncclWindow_t window = window_on(comm, memory);
    const auto put = [&](std::size_t count, int peer, std::size_t offset) {
      return ncclPutSignal(own.data(), count, ncclInt32, peer, window, offset, 0, 0, 0, comm,
                           nullptr);
    };
    if (rank == 0) {
      good(put(8, 1, 0));
      bad(put(8, 1, 4), ncclInvalidArgument, "window of rank 1");
      wait_for_signals(comm, 1, 1);
    } else {
      bad(put(5, 0, 0), ncclInvalidArgument, "window of rank 0, which has 16");
      bad(put(1, 0, 16), ncclInvalidArgument, "do not fit");
      good(put(1, 0, 12));
      wait_for_signals(comm, 1, 0);
      CHECK(memory == own);
    }
    CHECK(memory.back() == 3 && (rank == 1 || memory[2] == 0));
  });
}

TEST(mistakes_with_signals) {
  with_comm(2, [](ncclComm_t comm, int rank) {
    Ints memory(4);
    const ncclWindow_t window = window_on(comm, memory);
    const auto put = [&](int peer, ncclWindow_t into, int signal) {
      return ncclPutSignal(memory.data(), 1, ncclInt32, peer, into, 0, signal, 0, 0, comm, nullptr);
    };
    bad(put(2, window, 0), ncclInvalidArgument, "peer 2");
    bad(put(1, nullptr, 0), ncclInvalidArgument, "window");
    bad(put(1, window, -1), ncclInvalidArgument, "sigIdx");
    bad(ncclSignal(-1, 0, 0, 0, comm, nullptr), ncclInvalidArgument, "peer -1");
    bad(ncclWaitSignal(1, nullptr, comm, nullptr), ncclInvalidArgument, "signalDescs");
    ncclWaitSignalDesc_t of_itself{1, rank, 0, 0}, negative{-1, 0, 0, 0};
    bad(ncclWaitSignal(1, &of_itself, comm, nullptr), ncclInvalidUsage, "itself");
    bad(ncclWaitSignal(1, &negative, comm, nullptr), ncclInvalidArgument, "opCnt");
    void* data = nullptr;
    bad(ncclWinGetUserPtr(comm, nullptr, &data), ncclInvalidArgument, "window");
    bad(ncclCommWindowRegister(comm, nullptr, 4, nullptr, 0), ncclInvalidArgument, "win");
  });
}

// One rank alone asks for windows that are never made: all still mean the same ones.
TEST(windows_of_groups_that_came_to_nothing) {
  with_comm(2, [](ncclComm_t comm, int rank) {
    Ints a(4), b(4), own(4, rank + 1);
    ncclWindow_t dropped = nullptr;
    if (rank == 1) {
      ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
      good(ncclGroupStart());
      good(ncclCommWindowRegister(comm, own.data(), 16, &dropped, 0));
      good(ncclGroupSimulateEnd(&info));
      good(ncclGroupStart());
      good(ncclCommWindowRegister(comm, own.data(), 16, &dropped, 0));
      bad(ncclSend(own.data(), 1, ncclNumTypes, 0, comm, nullptr), ncclInvalidArgument, "datatype");
      bad(ncclGroupEnd(), ncclInvalidArgument, "datatype");
    }
    const ncclWindow_t into_a = window_on(comm, a), into_b = window_on(comm, b);
    const auto put = [&](ncclWindow_t window) {
      return ncclPutSignal(own.data(), 4, ncclInt32, 1 - rank, window, 0, 0, 0, 0, comm, nullptr);
    };
    if (rank == 1) bad(put(dropped), ncclInvalidUsage, "not all ranks");
    good(put(rank == 0 ? into_a : into_b));
    wait_for_signals(comm, 1, 1 - rank);
    CHECK(a == Ints(4, rank == 0 ? 0 : 1) && b == Ints(4, rank == 0 ? 2 : 0));
  });
}

// A wait that fails has used up nothing.
TEST(signals_that_came_before_a_wait_failed) {
  with_comm(2, [](ncclComm_t comm, int rank) {
    if (rank == 1) return good(ncclSignal(0, 0, 0, 0, comm, nullptr));
    ncclWaitSignalDesc_t both[] = {{1, 1, 0, 0}, {1, 0, 0, 5}};
    bad(ncclWaitSignal(2, both, comm, nullptr), ncclInvalidUsage, "itself");
    bad(ncclWaitSignal(2, both, comm, nullptr), ncclInvalidUsage, "itself");
    good(ncclWaitSignal(1, both, comm, nullptr));
  });
}

TEST(data_for_a_window_that_is_gone) {
  with_comm(2, [](ncclComm_t comm, int rank) {
    Ints memory(4);
    const ncclWindow_t window = window_on(comm, memory);
    if (rank == 1) {
      good(ncclPutSignal(memory.data(), 4, ncclInt32, 0, window, 0, 0, 0, 0, comm, nullptr));
      return good(ncclSignal(0, 0, 0, 0, comm, nullptr));
    }
    good(ncclCommWindowDeregister(comm, window));
    ncclWaitSignalDesc_t what{1, 1, 0, 0};
    bad(ncclWaitSignal(1, &what, comm, nullptr), ncclInvalidUsage, "rank 1 has put data");
    good(ncclWaitSignal(1, &what, comm, nullptr));  // the next one is whole
  });
}

TEST(windows_of_groups_and_of_communicators_that_do_not_block) {
  in_processes(2, [](int rank, Board& board) {
    const ncclUniqueId id = id_of(board, rank);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr;
    const auto done = [&](ncclResult_t begun) {
      CHECK(begun == ncclInProgress);
      ncclResult_t state = ncclInProgress;
      for (int i = 0; i < 20'000 && state == ncclInProgress; ++i) {
        good(ncclCommGetAsyncError(comm, &state));
        check::nap(1);
      }
      good(state);
    };
    done(ncclCommInitRankConfig(&comm, 2, id, rank, &config));
    Ints memory(kShort), own(kShort, rank);
    ncclWindow_t window = nullptr, dropped = nullptr;
    const std::size_t bytes = kShort * sizeof(int);
    const ncclResult_t begun = ncclCommWindowRegister(comm, memory.data(), bytes, &dropped, 0);
    good(ncclCommWindowDeregister(comm, dropped));  // while its ranks may still exchange sizes
    done(begun);
    good(ncclGroupStart());
    good(ncclCommWindowRegister(comm, memory.data(), bytes, &dropped, 0));
    good(ncclCommWindowRegister(comm, memory.data(), bytes, &window, 0));
    good(ncclCommWindowDeregister(comm, dropped));
    bad(ncclPutSignal(own.data(), 1, ncclInt32, 0, window, 0, 0, 0, 0, comm, nullptr),
        ncclInvalidUsage, "not all ranks");
    bad(ncclGroupEnd(), ncclInvalidUsage, "not all ranks");
    done(ncclCommWindowRegister(comm, memory.data(), bytes, &window, 0));
    done(ncclPutSignal(own.data(), kShort, ncclInt32, 1 - rank, window, 0, 0, 0, 0, comm, nullptr));
    ncclWaitSignalDesc_t what{1, 1 - rank, 0, 0};
    done(ncclWaitSignal(1, &what, comm, nullptr));
    CHECK(memory == Ints(kShort, 1 - rank));
    good(ncclCommDestroy(comm));
  });
}

TEST(a_rank_that_dies_before_it_signals) {
  in_processes(2, [](int rank, Board& board) {
    ncclComm_t comm = nullptr;
    good(ncclCommInitRank(&comm, 2, id_of(board, rank), rank));
    if (rank == 1) std::_Exit(0);
    ncclWaitSignalDesc_t what{1, 1, 0, 0};
    bad(ncclWaitSignal(1, &what, comm, nullptr), ncclRemoteError, "rank 1");
    good(ncclCommAbort(comm));
  });
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// Ranks of libnccl.so.2 that are lost, or fail, while communicators are made; and those that are
// lost while no call is made.
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "instrumented.h"
#include "ranks.h"

namespace {

// Whether this process dies when it is about to share memory with others.
std::atomic<bool> doomed = false;

}  // namespace

// In the place of the C library's, also for the library that is tested.
extern "C" __attribute__((visibility("default"))) int bind(int fd, const sockaddr* address,
                                                           socklen_t bytes) {
  if (doomed.load() && address->sa_family == AF_UNIX) ::kill(::getpid(), SIGKILL);
  return static_cast<int>(::syscall(SYS_bind, fd, address, bytes));
}

namespace {

using namespace nccl_test;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

// The thread sanitizer knows of 64 locks of a thread, and a rank is one.
constexpr int kManyRanks = check::kInstrumented ? 60 : 92;
constexpr auto kSoon = check::promised(milliseconds(2000));

// body(rank) in p processes, of which the victim may end as it likes.
void with_victim(int p, int victim, const Body& body) {
  const Shared<Board> board;
  std::vector<check::Child> children;
  for (int rank = 0; rank < p; ++rank) {
    children.emplace_back([&, rank] { body(rank, *board); });
  }
  for (int rank = 0; rank < p; ++rank) {
    const int status = children[static_cast<std::size_t>(rank)].wait(seconds(60));
    if (rank == victim) {
      CHECK(status == 128 + SIGKILL || status == 0);
    } else {
      CHECK(status == 0);
    }
  }
}

// Of a name of its own, where this process may choose one; else it stays where it is.
void be_another_host() {
  constexpr std::string_view kName = "another";
  if (::unshare(CLONE_NEWUTS) != 0) return;
  CHECK(::sethostname(kName.data(), kName.size()) == 0);
}

// Where the victim fails by itself the others hear why.
void check_joining(int victim, const char* fault, const char* words) {
  with_victim(3, victim, [&](int rank, Board& board) {
    const ncclUniqueId id = id_of(board, rank);
    if (rank == victim && fault == nullptr) doomed = true;
    if (rank == victim && fault != nullptr) ::setenv("COLLECTIVES_FAULT", fault, 1);
    ncclComm_t comm = nullptr;
    const auto begin = Clock::now();
    const ncclResult_t result = ncclCommInitRank(&comm, 3, id, rank);
    CHECK(Clock::now() - begin < kSoon && comm == nullptr);
    bad(result, rank == victim ? ncclSystemError : ncclRemoteError, words);
  });
}

TEST(a_rank_that_is_killed_between_meeting_and_joining_ends_the_others) {
  for (int victim = 0; victim < 3; ++victim) check_joining(victim, nullptr, "");
}

TEST(a_rank_that_cannot_join_tells_the_others_why) {
  for (int victim = 0; victim < 3; ++victim) {
    check_joining(victim, "socket:2:EMFILE", "Too many open files");
  }
}

TEST(a_rank_that_is_killed_while_others_shrink_ends_them) {
  for (int victim = 0; victim < 3; ++victim) {
    with_victim(4, victim, [&](int rank, Board& board) {
      ncclComm_t comm = nullptr, left = nullptr;
      good(ncclCommInitRank(&comm, 4, id_of(board, rank), rank));
      CHECK(sum_over(comm, 1) == 4);
      doomed = rank == victim;
      int out = 3;
      if (rank != 3) {
        const auto begin = Clock::now();
        bad(ncclCommShrink(comm, &out, 1, &left, nullptr, NCCL_SHRINK_DEFAULT), ncclRemoteError,
            "rank " + std::to_string(victim));
        CHECK(Clock::now() - begin < kSoon && left == nullptr);
      }
      good(ncclCommAbort(comm));
    });
  }
}

TEST(two_processes_that_come_as_one_rank_are_all_told) {
  in_processes(3, [](int process, Board& board) {
    const ncclUniqueId id = id_of(board, process);
    ncclComm_t comm = nullptr;
    const auto begin = Clock::now();
    bad(ncclCommInitRank(&comm, 3, id, process == 0 ? 0 : 1), ncclSystemError, "rank 1");
    CHECK(Clock::now() - begin < kSoon);
    board.step.fetch_add(1);
    wait_for(board.step, 3);  // the process that made the id tells all, if it is there
  });
}

// ---- several sets of one process, and names --------------------------------------------------

using Comms = std::vector<ncclComm_t>;

// All but the last `out` ranks.
Comms shrunk(const Comms& comms, int out) {
  const auto left = comms.size() - static_cast<std::size_t>(out);
  std::vector<int> list;
  for (std::size_t r = left; r < comms.size(); ++r) list.push_back(static_cast<int>(r));
  Comms made(left, nullptr);
  good(ncclGroupStart());
  for (std::size_t r = 0; r < left; ++r) {
    good(ncclCommShrink(comms[r], list.data(), out, &made[r], nullptr, NCCL_SHRINK_DEFAULT));
  }
  good(ncclGroupEnd());
  return made;
}

void destroy(const Comms& comms) {
  for (ncclComm_t comm : comms) good(ncclCommDestroy(comm));
}

void check_sum(const Comms& comms) {
  std::vector<int> values(comms.size(), 1);
  good(ncclGroupStart());
  for (std::size_t r = 0; r < comms.size(); ++r) {
    good(ncclAllReduce(&values[r], &values[r], 1, ncclInt32, ncclSum, comms[r], nullptr));
  }
  good(ncclGroupEnd());
  for (const int value : values) CHECK(value == static_cast<int>(comms.size()));
}

void check_set(int ranks, int out) {
  Comms comms(static_cast<std::size_t>(ranks), nullptr);
  good(ncclCommInitAll(comms.data(), ranks, nullptr));
  const Comms left = shrunk(comms, out);
  check_sum(left);
  destroy(left);
  destroy(comms);
}

TEST(sets_of_one_process_shrink_at_the_same_time) {
  in_processes(2, [](int, Board&) {
    std::atomic<int> failures = 0;
    const auto body = [&failures] {
      try {
        for (int i = 0; i < 5; ++i) check_set(4, 1);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        ++failures;
      }
    };
    std::thread other(body);
    body();
    other.join();
    CHECK(failures == 0);
  });
}

TEST(many_ranks_may_be_left_out) {
  in_processes(1, [](int, Board&) { check_set(kManyRanks, kManyRanks - 2); });
}

TEST(parts_of_parts_have_names_of_one_length) {
  with_comm(2, [](ncclComm_t comm, int rank) {
    constexpr int kDepth = kManyRanks - 12;
    Comms parts = {comm};
    for (int i = 0; i < kDepth; ++i) {
      ncclComm_t part = nullptr;
      good(ncclCommSplit(parts.back(), 0, 0, &part, nullptr));
      parts.push_back(part);
    }
    int out = 1 - rank;
    ncclComm_t alone = nullptr;
    good(ncclCommShrink(parts.back(), &out, 1, &alone, nullptr, NCCL_SHRINK_DEFAULT));
    CHECK(ranks_of(alone) == 1);
    parts.push_back(alone);
    parts.erase(parts.begin());
    destroy(parts);
  });
}

// ---- ranks that are lost while no call is made ------------------------------------------------

ncclResult_t state_of(ncclComm_t comm) {
  ncclResult_t state = ncclInternalError;
  good(ncclCommGetAsyncError(comm, &state));
  return state;
}

void check_idle_death(bool two_hosts) {
  with_victim(3, 1, [&](int rank, Board& board) {
    if (two_hosts && rank == 2) be_another_host();
    ncclComm_t comm = nullptr;
    good(ncclCommInitRank(&comm, 3, id_of(board, rank), rank));
    CHECK(sum_over(comm, 1) == 3 && state_of(comm) == ncclSuccess);
    board.step.fetch_add(1);
    wait_for(board.step, 3);
    if (rank == 1) ::kill(::getpid(), SIGKILL);
    const auto begin = Clock::now();
    while (state_of(comm) == ncclSuccess && Clock::now() - begin < kSoon) check::nap(10);
    CHECK(state_of(comm) == ncclRemoteError);
    CHECK(std::string(ncclGetLastError(comm)).find("rank 1") != std::string::npos);
    board.step.fetch_add(1);
    wait_for(board.step, 5);
    good(ncclCommAbort(comm));
  });
}

TEST(an_idle_rank_hears_of_a_death) { check_idle_death(false); }

TEST(an_idle_rank_hears_of_a_death_on_another_host) { check_idle_death(true); }

TEST(an_idle_rank_hears_of_a_death_over_tcp) {
  const OverTcp apart;
  check_idle_death(false);
}

// Who asks while another thread is in calls disturbs nobody, and who leaves in order is not lost.
void check_asking() {
  in_processes(2, [](int rank, Board& board) {
    ncclComm_t comm = nullptr;
    good(ncclCommInitRank(&comm, 2, id_of(board, rank), rank));
    std::atomic<bool> done = false;
    std::atomic<int> wrong = 0;
    std::thread asks([&] {
      while (!done.load()) {
        if (state_of(comm) != ncclSuccess) ++wrong;
      }
    });
    for (int i = 0; i < 2000; ++i) CHECK(sum_over(comm, i) == 2 * i);
    if (rank == 1) {
      done = true;
      asks.join();
      good(ncclCommDestroy(comm));
      board.step = 1;
      return;
    }
    wait_for(board.step, 1);
    check::nap(1000);
    done = true;
    asks.join();
    CHECK(wrong == 0);
    good(ncclCommDestroy(comm));
  });
}

TEST(asking_for_errors_beside_calls) { check_asking(); }

TEST(asking_for_errors_beside_calls_over_tcp) {
  const OverTcp apart;
  check_asking();
}

}  // namespace

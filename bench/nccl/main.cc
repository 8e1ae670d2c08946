// SPDX-License-Identifier: Apache-2.0
// What libnccl.so.2 costs above the C interface, and what a group of small calls saves. Ranks are
// processes; both ways in turn, on communicators of the same processes.
//   coll_nccl calls RANKS ROUNDS            a line a round: bytes, ns of a call of C, of NCCL's
//   coll_nccl groups RANKS ROUNDS           a line a round: calls, ns of all one by one, in a group
// NCCL_SHM_DISABLE=1 lets the second go over TCP.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "../limits/probe.h"
#include "collectives.h"
#include "nccl.h"

namespace nccl_bench {
namespace {

struct Board {
  std::atomic<int> ready{0};
  ncclUniqueId id{};
};

struct Size {
  std::size_t bytes;
  int calls;  // of a block
};
constexpr Size kSizes[] = {{8, 4000},     {64, 4000},       {512, 4000},     {4096, 2000},
                           {32768, 1000}, {1U << 18U, 100}, {1U << 21U, 20}, {1U << 24U, 3}};
constexpr int kCalls = 100;           // of a group
constexpr std::size_t kNumbers = 16;  // of each

void good(coll_status status) {
  if (status != COLL_OK) throw std::runtime_error(coll_last_error());
}
void good(ncclResult_t result) {
  if (result != ncclSuccess) throw std::runtime_error(ncclGetLastError(nullptr));
}

class Rank {
 public:
  Rank(int rank, int ranks, Board& board) : rank_(rank) {
    const std::vector<int> cores = limits::usable_cores();
    limits::pin(cores[static_cast<std::size_t>(rank) % cores.size()]);
    if (rank == 0) {
      good(ncclGetUniqueId(&board.id));
      board.ready = 1;
    }
    while (board.ready == 0) ::usleep(1000);
    good(ncclCommInitRank(&nccl_, ranks, board.id, rank));
    coll_options options{};
    options.size = sizeof options;
    options.rank = rank;
    options.ranks = ranks;
    const std::string job = "coll_nccl-" + std::to_string(::getppid());
    options.job = job.c_str();
    good(coll_init(&options, &comm_));
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;
  ~Rank() {
    ncclCommDestroy(nccl_);
    coll_close(comm_);
  }

  void measure_calls(int rounds) {
    for (const Size& size : kSizes) {
      x_.assign(size.bytes / sizeof(float), 0);
      for (int round = -1; round < rounds; ++round) {
        // Whoever is second finds what the first has left in the caches.
        const bool ours_first = round % 2 == 0;
        const double first = block(size.calls, ours_first);
        const double second = block(size.calls, !ours_first);
        if (round < 0 || rank_ != 0) continue;
        std::printf("%zu %.1f %.1f\n", size.bytes, ours_first ? first : second,
                    ours_first ? second : first);
      }
    }
  }

  void measure_groups(int rounds) {
    x_.assign(kCalls * kNumbers, 0);
    for (int round = -1; round < rounds; ++round) {
      const double alone = calls(false), together = calls(true);
      if (round >= 0 && rank_ == 0) std::printf("%d %.1f %.1f\n", kCalls, alone, together);
    }
  }

 private:
  double block(int calls, bool ours) {
    good(coll_barrier(comm_));
    const double begin = limits::now_ns();
    for (int i = 0; i < calls; ++i) {
      if (ours) {
        good(coll_allreduce(comm_, x_.data(), x_.data(), x_.size(), COLL_FLOAT32, COLL_SUM));
      } else {
        good(ncclAllReduce(x_.data(), x_.data(), x_.size(), ncclFloat32, ncclSum, nccl_, nullptr));
      }
    }
    return (limits::now_ns() - begin) / calls;
  }

  double calls(bool grouped) {
    good(coll_barrier(comm_));
    const double begin = limits::now_ns();
    if (grouped) good(ncclGroupStart());
    for (int i = 0; i < kCalls; ++i) {
      float* const at = &x_[static_cast<std::size_t>(i) * kNumbers];
      good(ncclAllReduce(at, at, kNumbers, ncclFloat32, ncclSum, nccl_, nullptr));
    }
    if (grouped) good(ncclGroupEnd());
    return limits::now_ns() - begin;
  }

  int rank_;
  std::vector<float> x_;
  ncclComm_t nccl_ = nullptr;
  coll_comm* comm_ = nullptr;
};

int run(const std::string& what, int rank, int ranks, int rounds, Board& board) {
  try {
    Rank own(rank, ranks, board);
    what == "calls" ? own.measure_calls(rounds) : own.measure_groups(rounds);
    std::fflush(stdout);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    return 1;
  }
}

int start(const std::string& what, int ranks, int rounds) {
  void* const memory =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 2;
  auto* const board = new (memory) Board;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(run(what, rank, ranks, rounds, *board));
    if (child < 0) return 2;
  }
  int wrong = 0;
  for (int status = 0; ::wait(&status) > 0;) wrong += status != 0;
  return wrong != 0;
}

}  // namespace
}  // namespace nccl_bench

int main(int argc, char** argv) {
  const std::string what = argc == 4 ? argv[1] : "";
  if (what != "calls" && what != "groups") {
    std::fprintf(stderr, "coll_nccl calls|groups RANKS ROUNDS\n");
    return 2;
  }
  return nccl_bench::start(what, static_cast<int>(std::strtol(argv[2], nullptr, 10)),
                           static_cast<int>(std::strtol(argv[3], nullptr, 10)));
}

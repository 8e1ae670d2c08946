// SPDX-License-Identifier: Apache-2.0
// Ranks as processes that meet by a unique id, as programs for NCCL do. Includes nothing of this
// library but <nccl.h>, so that it compiles against NCCL's own header, too.
#pragma once

#include <nccl.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.h"
#include "child.h"

namespace nccl_test {

// Memory that a process shares with those that it forks.
template <class T>
class Shared {
 public:
  Shared() {
    void* const memory =
        ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("mmap failed");
    value_ = new (memory) T{};
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() { ::munmap(value_, sizeof(T)); }
  T& operator*() const { return *value_; }
  T* operator->() const { return value_; }

 private:
  T* value_;
};

struct Board {
  std::atomic<int> ready{0};
  std::atomic<int> step{0};
  ncclUniqueId id;
};

inline std::string text_of(ncclResult_t result, ncclComm_t comm = nullptr) {
  return std::string(ncclGetErrorString(result)) + ": " + ncclGetLastError(comm);
}

inline void good(ncclResult_t result, const char* file = __builtin_FILE(),
                 int line = __builtin_LINE()) {
  if (result != ncclSuccess) check::fail(text_of(result), file, line);
}

// Fails the test unless the last error says that, too.
inline void bad(ncclResult_t result, ncclResult_t wanted, const std::string& words,
                const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const std::string text = text_of(result);
  if (result != wanted) check::fail("another result: " + text, file, line);
  if (text.find(words) == std::string::npos) check::fail("other words: " + text, file, line);
}

inline void wait_for(const std::atomic<int>& step, int value) {
  for (int i = 0; step.load() < value; ++i) {
    if (i > 20'000) throw std::runtime_error("another rank does not come");
    check::nap(1);
  }
}

inline ncclUniqueId id_of(Board& board, int rank) {
  if (rank == 0) {
    good(ncclGetUniqueId(&board.id));
    board.ready = 1;
  }
  wait_for(board.ready, 1);
  return board.id;
}

// While it lives ranks that are made share no memory, and speak TCP.
class OverTcp {
 public:
  OverTcp() { ::setenv("NCCL_SHM_DISABLE", "1", 1); }
  OverTcp(const OverTcp&) = delete;
  OverTcp& operator=(const OverTcp&) = delete;
  ~OverTcp() { ::unsetenv("NCCL_SHM_DISABLE"); }
};

using Body = std::function<void(int rank, Board& board)>;

// body(rank) in p processes; all must end well. What makes an id keeps a thread, which no process
// should have that forks: so even one rank is a process of its own.
inline void in_processes(int p, const Body& body) {
  const Shared<Board> board;
  std::vector<check::Child> children;
  for (int rank = 0; rank < p; ++rank) {
    children.emplace_back([&, rank] { body(rank, *board); });
  }
  int wrong = 0;
  for (check::Child& child : children) wrong += child.wait(std::chrono::seconds(60)) != 0;
  if (wrong > 0) check::fail(std::to_string(wrong) + " ranks failed");
}

// The same with a communicator of all of them.
inline void with_comm(int p, const std::function<void(ncclComm_t, int)>& body) {
  in_processes(p, [&](int rank, Board& board) {
    ncclComm_t comm = nullptr;
    good(ncclCommInitRank(&comm, p, id_of(board, rank), rank));
    body(comm, rank);
    good(ncclCommDestroy(comm));
  });
}

inline int sum_over(ncclComm_t comm, int value) {
  good(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr));
  return value;
}

inline int ranks_of(ncclComm_t comm) {
  int ranks = 0;
  good(ncclCommCount(comm, &ranks));
  return ranks;
}

}  // namespace nccl_test

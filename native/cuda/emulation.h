// SPDX-License-Identifier: Apache-2.0
// The kernel without a GPU: every thread of a block is a thread of this process. It is what tests
// run, with the thread sanitizer too; it is slow, and says nothing of speed.
#pragma once

#include <barrier>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "cuda/direct.h"
#include "cuda/interpreter.h"

namespace coll::cuda {

// A block, as one of its threads sees it.
class ThreadGroup {
 public:
  using Line = Vector<kVectorBytes>;
  struct Shared {
    Shared(int threads, std::size_t bytes)
        : barrier(threads), memory(std::make_unique<Line[]>(bytes / sizeof(Line) + 1)) {}
    std::barrier<> barrier;
    std::unique_ptr<Line[]> memory;
    std::atomic<bool> refused[2] = {false, false};
  };

  ThreadGroup(Shared& shared, int thread, int threads) noexcept
      : shared_(shared), thread_(thread), threads_(threads) {}

  std::size_t thread() const noexcept { return static_cast<std::size_t>(thread_); }
  std::size_t threads() const noexcept { return static_cast<std::size_t>(threads_); }
  std::byte* shared() const noexcept { return reinterpret_cast<std::byte*>(shared_.memory.get()); }
  void sync() noexcept { shared_.barrier.arrive_and_wait(); }
  // Whether all threads say yes. Votes take turns: one is cleared while nobody looks at it.
  bool all(bool yes) noexcept {
    auto& refused = shared_.refused[turn_ ^= 1];
    if (!yes) refused = true;
    sync();
    const bool outcome = !refused;
    shared_.refused[turn_ ^ 1] = false;
    sync();
    return outcome;
  }

 private:
  Shared& shared_;
  int thread_, threads_;
  int turn_ = 0;
};

// What one thread of a block does: false, it was stopped.
using BlockThread = bool (*)(ThreadGroup& group, const Launch& launch, int rank, int channel);

// Runs all blocks of a launch, each of so many threads, to their ends. Returns whether none was
// stopped.
inline bool emulate_blocks(const Launch& launch, int threads, std::size_t shared_bytes,
                           BlockThread run) {
  std::vector<std::unique_ptr<ThreadGroup::Shared>> blocks;
  std::vector<std::thread> running;
  std::atomic<bool> whole{true};
  const int end = launch.first_rank + launch.ranks_here;
  for (int rank = launch.first_rank; rank < end; ++rank) {
    for (int channel = 0; channel < launch.channels; ++channel) {
      auto& shared =
          *blocks.emplace_back(std::make_unique<ThreadGroup::Shared>(threads, shared_bytes));
      for (int thread = 0; thread < threads; ++thread) {
        running.emplace_back([&launch, &shared, &whole, run, rank, channel, thread, threads] {
          ThreadGroup group(shared, thread, threads);
          if (!run(group, launch, rank, channel)) whole = false;
        });
      }
    }
  }
  for (std::thread& thread : running) thread.join();
  return whole;
}

template <class Element, class Operation, class Order = ReleaseAcquire>
bool emulate(const Launch& launch, int threads, std::size_t shared_bytes) {
  return emulate_blocks(launch, threads, shared_bytes,
                        [](ThreadGroup& group, const Launch& told, int rank, int channel) {
                          return Interpreter<Element, Operation, Order, ThreadGroup>(group, told,
                                                                                     rank, channel)
                              .run();
                        });
}

using DirectThread = void (*)(const Direct& direct, std::uint32_t rank, std::uint32_t block,
                              std::size_t thread, std::size_t threads);

// The same of a direct launch: a thread for each one of a block, for all blocks that there are.
inline void emulate_direct_blocks(const Direct& direct, int threads, DirectThread run) {
  std::vector<std::thread> running;
  const std::uint32_t ranks = direct.in_turn != 0 ? 1 : static_cast<std::uint32_t>(direct.ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (std::uint32_t block = 0; block < direct.blocks; ++block) {
      for (int thread = 0; thread < threads; ++thread) {
        running.emplace_back([&direct, run, rank, block, thread, threads] {
          run(direct, rank, block, static_cast<std::size_t>(thread),
              static_cast<std::size_t>(threads));
        });
      }
    }
  }
  for (std::thread& thread : running) thread.join();
}

template <class Element, class Operation>
void emulate_direct(const Direct& direct, int threads) {
  emulate_direct_blocks(direct, threads, run_direct<Element, Operation>);
}

}  // namespace coll::cuda

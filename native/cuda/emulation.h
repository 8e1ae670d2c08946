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

// Runs all blocks of a launch, each of so many threads, to their ends. Returns whether none was
// stopped.
template <class Element, class Operation, class Order = ReleaseAcquire>
bool emulate(const Launch& launch, int threads, std::size_t shared_bytes) {
  std::vector<std::unique_ptr<ThreadGroup::Shared>> blocks;
  std::vector<std::thread> running;
  std::atomic<bool> whole{true};
  const int end = launch.first_rank + launch.ranks_here;
  for (int rank = launch.first_rank; rank < end; ++rank) {
    for (int channel = 0; channel < launch.channels; ++channel) {
      auto& shared =
          *blocks.emplace_back(std::make_unique<ThreadGroup::Shared>(threads, shared_bytes));
      for (int thread = 0; thread < threads; ++thread) {
        running.emplace_back([&launch, &shared, &whole, rank, channel, thread, threads] {
          ThreadGroup group(shared, thread, threads);
          Interpreter<Element, Operation, Order, ThreadGroup> block(group, launch, rank, channel);
          if (!block.run()) whole = false;
        });
      }
    }
  }
  for (std::thread& thread : running) thread.join();
  return whole;
}

// The same of a direct launch: a thread for each one of a block, for all blocks that there are.
template <class Element, class Operation>
void emulate_direct(const Direct& direct, int threads) {
  std::vector<std::thread> running;
  const std::uint32_t ranks = direct.in_turn != 0 ? 1 : static_cast<std::uint32_t>(direct.ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (std::uint32_t block = 0; block < direct.blocks; ++block) {
      for (int thread = 0; thread < threads; ++thread) {
        running.emplace_back([&direct, rank, block, thread, threads] {
          run_direct<Element, Operation>(direct, rank, block, static_cast<std::size_t>(thread),
                                         static_cast<std::size_t>(threads));
        });
      }
    }
  }
  for (std::thread& thread : running) thread.join();
}

}  // namespace coll::cuda

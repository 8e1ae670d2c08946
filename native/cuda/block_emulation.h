// SPDX-License-Identifier: Apache-2.0
// Blocks of a launch as threads of this process: for kernels whose blocks do not wait for each
// other. As emulation.h, it is for tests.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "cuda/vectors.h"

namespace coll::cuda {

// A block, as one of its threads sees it. The thread sanitizer takes all that threads share for an
// order: so its barrier has nothing in common with those of other blocks, as std::barrier has where
// threads sleep, nor with the one before. Who wakes late would else be behind all that others did
// since they met.
class BlockThread {
 public:
  class Block {
   public:
    Block(int threads, std::size_t bytes)
        : threads_(threads), memory_(std::make_unique<Line[]>(bytes / sizeof(Line) + 1)) {}

    int threads() const noexcept { return threads_; }
    std::byte* memory() const noexcept { return reinterpret_cast<std::byte*>(memory_.get()); }
    // `turn`: 0 and 1 in turns.
    void meet(int turn) {
      Meeting& meeting = meetings_[turn];
      std::unique_lock lock(meeting.mutex);
      const std::uint64_t number = meeting.number;
      if (++meeting.here == threads_) {
        meeting.here = 0;
        ++meeting.number;
        meeting.all_here.notify_all();
        return;
      }
      meeting.all_here.wait(lock, [&] { return meeting.number != number; });
    }

   private:
    using Line = Vector<kVectorBytes>;
    struct Meeting {
      std::mutex mutex;
      std::condition_variable all_here;
      std::uint64_t number = 0;
      int here = 0;
    };
    int threads_;
    Meeting meetings_[2];
    std::unique_ptr<Line[]> memory_;
  };

  BlockThread(Block& block, int thread) noexcept : block_(block), thread_(thread) {}

  std::size_t thread() const noexcept { return static_cast<std::size_t>(thread_); }
  std::size_t threads() const noexcept { return static_cast<std::size_t>(block_.threads()); }
  std::byte* shared() const noexcept { return block_.memory(); }
  void sync() { block_.meet(turn_ ^= 1); }

 private:
  Block& block_;
  int thread_, turn_ = 0;
};

// Calls body(group, block) in each of the threads of each of the blocks, to their ends.
template <class Body>
void emulate_blocks(std::uint32_t blocks, int threads, std::size_t shared_bytes, Body body) {
  std::vector<std::unique_ptr<BlockThread::Block>> all;
  std::vector<std::thread> running;
  for (std::uint32_t number = 0; number < blocks; ++number) {
    auto& block = *all.emplace_back(std::make_unique<BlockThread::Block>(threads, shared_bytes));
    for (int thread = 0; thread < threads; ++thread) {
      running.emplace_back([&block, &body, number, thread] {
        BlockThread group(block, thread);
        body(group, number);
      });
    }
  }
  for (std::thread& thread : running) thread.join();
}

}  // namespace coll::cuda

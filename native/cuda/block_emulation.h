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

// A block, as one of its threads sees it. Its barrier shares nothing with those of other blocks, as
// std::barrier does where threads sleep: the thread sanitizer would take that for an order.
class BlockThread {
 public:
  class Block {
   public:
    Block(int threads, std::size_t bytes)
        : threads_(threads), memory_(std::make_unique<Line[]>(bytes / sizeof(Line) + 1)) {}

    int threads() const noexcept { return threads_; }
    std::byte* memory() const noexcept { return reinterpret_cast<std::byte*>(memory_.get()); }
    void meet() {
      std::unique_lock lock(mutex_);
      const std::uint64_t phase = phase_;
      if (++here_ == threads_) {
        here_ = 0;
        ++phase_;
        all_here_.notify_all();
        return;
      }
      all_here_.wait(lock, [&] { return phase_ != phase; });
    }

   private:
    using Line = Vector<kVectorBytes>;
    int threads_, here_ = 0;
    std::uint64_t phase_ = 0;
    std::mutex mutex_;
    std::condition_variable all_here_;
    std::unique_ptr<Line[]> memory_;
  };

  BlockThread(Block& block, int thread) noexcept : block_(block), thread_(thread) {}

  std::size_t thread() const noexcept { return static_cast<std::size_t>(thread_); }
  std::size_t threads() const noexcept { return static_cast<std::size_t>(block_.threads()); }
  std::byte* shared() const noexcept { return block_.memory(); }
  void sync() { block_.meet(); }

 private:
  Block& block_;
  int thread_;
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

// SPDX-License-Identifier: Apache-2.0
// Blocks of a launch as threads of this process: for kernels whose blocks do not wait for each
// other. As emulation.h, it is for tests.
#pragma once

#include "cuda/emulation.h"

namespace coll::cuda {

// Calls body(group, block) in each of the threads of each of the blocks, to their ends.
template <class Body>
void emulate_blocks(std::uint32_t blocks, int threads, std::size_t shared_bytes, Body body) {
  std::vector<std::unique_ptr<ThreadGroup::Shared>> shared;
  std::vector<std::thread> running;
  for (std::uint32_t block = 0; block < blocks; ++block) {
    auto& its = *shared.emplace_back(std::make_unique<ThreadGroup::Shared>(threads, shared_bytes));
    for (int thread = 0; thread < threads; ++thread) {
      running.emplace_back([&its, &body, block, thread, threads] {
        ThreadGroup group(its, thread, threads);
        body(group, block);
      });
    }
  }
  for (std::thread& thread : running) thread.join();
}

}  // namespace coll::cuda

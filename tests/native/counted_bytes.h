// SPDX-License-Identifier: Apache-2.0
// Kernels of sparse vectors that count what they read from the memory of the device and write to
// it. What blocks keep in shared memory is not counted, nor the bins that they merge at the end.
#pragma once

#include <atomic>
#include <cstdint>

#include "cuda/counters.h"

namespace coll::testing {

struct Counted : cuda::AsItIs {
  inline static std::atomic<std::uint64_t> reads{0}, writes{0};
  static void read(std::size_t bytes) noexcept {
    reads.fetch_add(bytes, std::memory_order_relaxed);
  }
  static void written(std::size_t bytes) noexcept {
    writes.fetch_add(bytes, std::memory_order_relaxed);
  }

  // Of `work`: bytes for each of n elements.
  template <class Work>
  static double each(std::size_t n, Work work) {
    reads = writes = 0;
    work();
    return static_cast<double>(reads + writes) / static_cast<double>(n);
  }
};

}  // namespace coll::testing

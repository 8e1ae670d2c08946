// SPDX-License-Identifier: Apache-2.0
// A block of threads of a GPU, for the interpreter; and the kernel itself. Read by nvcc only,
// twice: once for the host, where a block has no threads.
#pragma once

#include <cstddef>

#include "cuda/interpreter.h"

namespace coll::cuda {

#if defined(__CUDA_ARCH__)
class BlockGroup {
 public:
  constexpr std::size_t thread() const noexcept { return threadIdx.x; }
  constexpr std::size_t threads() const noexcept { return blockDim.x; }
  constexpr std::byte* shared() const noexcept { return memory(); }
  constexpr void sync() noexcept { __syncthreads(); }
  constexpr bool all(bool yes) noexcept { return __syncthreads_and(yes ? 1 : 0) != 0; }

 private:
  __device__ static std::byte* memory() noexcept {
    extern __shared__ Vector<kVectorBytes> block_memory[];
    return reinterpret_cast<std::byte*>(block_memory);
  }
};
#else
class BlockGroup {
 public:
  constexpr std::size_t thread() const noexcept { return 0; }
  constexpr std::size_t threads() const noexcept { return 1; }
  constexpr std::byte* shared() const noexcept { return nullptr; }
  constexpr void sync() noexcept {}
  constexpr bool all(bool yes) noexcept { return yes; }
};
#endif

// Threads of a block. One block for each channel of each rank that the launch runs, channels of a
// rank one after another.
inline constexpr int kBlockThreads = 512;

template <class Element, class Operation>
__global__ void __launch_bounds__(kBlockThreads, 1)
    run_channel(const __grid_constant__ Launch launch) {
  BlockGroup group;
  const int block = static_cast<int>(blockIdx.x);
  Interpreter<Element, Operation, ReleaseAcquire, BlockGroup>(
      group, launch, launch.first_rank + block / launch.channels, block % launch.channels)
      .run();
}

}  // namespace coll::cuda

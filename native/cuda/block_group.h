// SPDX-License-Identifier: Apache-2.0
// A block of threads of a GPU, for the interpreter; and the kernel itself. Read by nvcc only,
// twice: once for the host, where a block has no threads.
#pragma once

#include <cstddef>
#include <type_traits>

#include "cuda/direct.h"
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

// Threads of a block, at most. One block for each channel (x) of each rank (y) that the launch
// runs.
inline constexpr int kBlockThreads = static_cast<int>(kMostThreads);

template <class Element, class Operation>
__global__ void __launch_bounds__(kBlockThreads, 1)
    run_channel(const __grid_constant__ Launch launch) {
  BlockGroup group;
  Interpreter<Element, Operation, ReleaseAcquire, BlockGroup>(
      group, launch, launch.first_rank + static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.x))
      .run();
}

// Blocks of a direct launch that a multiprocessor runs at a time: what a thread of two has
// registers for, of most dtypes it is one.
template <class Element, class Operation>
inline constexpr int kDirectBlocks =
    sizeof(typename Element::Memory) == 4 ||
            (kNarrow<Element> && sizeof(typename Element::Memory) == 2 &&
             std::is_same_v<Operation, kernels::Sum>)
        ? 2
        : 1;

template <class Element, class Operation>
__global__ void __launch_bounds__(kBlockThreads, kDirectBlocks<Element, Operation>)
    run_directly(const __grid_constant__ Direct direct) {
  run_direct<Element, Operation>(direct, blockIdx.y, blockIdx.x, threadIdx.x, blockDim.x);
}

}  // namespace coll::cuda

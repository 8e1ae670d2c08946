// SPDX-License-Identifier: Apache-2.0
// Kernels to measure by. Their launches say what goes wrong; what a kernel itself does wrong is
// found by who waits for the stream.
#include <algorithm>

#include "cuda/block_group.h"
#include "cuda/current_device.h"
#include "cuda/signals.h"
#include "gpu/values.h"

namespace coll::yardsticks {
namespace {

using cuda::CurrentDevice;
using cuda::kBlockThreads;
using cuda::outcome;
using Words = cuda::Signals<cuda::ReleaseAcquire>;

constexpr int kWordsApart = 16;  // a line that a GPU writes at a time

__global__ void fill(void* at, std::uint64_t n, bool narrow, std::uint64_t seed) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) {
    fill_at(at, i, narrow, seed);
  }
}

__global__ void count_wrong(const __grid_constant__ Vectors v, unsigned long long* wrong) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  unsigned long long mine = 0;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < v.n; i += step) {
    mine += wrong_at(v, i);
  }
  if (mine > 0) atomicAdd(wrong, mine);
}

// Eight loads of sixteen bytes are under way in a thread, whatever the number of ranks.
template <int kRanks>
__global__ void __launch_bounds__(kBlockThreads) fused(const __grid_constant__ Vectors v) {
  constexpr int kTogether = 8 / kRanks;
  const std::uint64_t vectors = v.n / 4, step = std::uint64_t{gridDim.x} * blockDim.x;
  const auto sum_at = [&]<int kCount>(std::uint64_t first) {
    float4 part[kCount][kRanks];
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
#pragma unroll
      for (int r = 0; r < kRanks; ++r) {
        part[j][r] = static_cast<const float4*>(v.in[r])[first + static_cast<unsigned>(j) * step];
      }
    }
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      float4 sum = part[j][0];
#pragma unroll
      for (int r = 1; r < kRanks; ++r) {
        sum.x += part[j][r].x;
        sum.y += part[j][r].y;
        sum.z += part[j][r].z;
        sum.w += part[j][r].w;
      }
#pragma unroll
      for (int r = 0; r < kRanks; ++r) {
        static_cast<float4*>(v.out[r])[first + static_cast<unsigned>(j) * step] = sum;
      }
    }
  };
  std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; i + (kTogether - 1) * step < vectors; i += kTogether * step) {
    sum_at.template operator()<kTogether>(i);
  }
  for (; i < vectors; i += step) sum_at.template operator()<1>(i);
}

__global__ void __launch_bounds__(kBlockThreads) nothing() {}

// Block 0 serves. Both words end where they began, plus `turns`.
__global__ void ping_pong(std::uint64_t* words, std::uint64_t turns) {
  const bool serves = blockIdx.x == 0;
  std::uint64_t* const mine = words + (serves ? 0 : kWordsApart);
  const std::uint64_t* const others = words + (serves ? kWordsApart : 0);
  const std::uint64_t begin = *mine;
  for (std::uint64_t turn = 1; turn <= turns; ++turn) {
    if (serves) Words::release(mine, begin + turn);
    while (Words::acquire(others) < begin + turn) {
    }
    if (!serves) Words::release(mine, begin + turn);
  }
}

// As many blocks as run at one time, and no more than there is work for.
int blocks_for(const void* kernel, std::int32_t device, std::uint64_t threads) noexcept {
  int multiprocessors = 1, each = 1;
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, kBlockThreads, 0);
  const std::uint64_t wanted = (threads + kBlockThreads - 1) / kBlockThreads;
  const auto most = static_cast<std::uint64_t>(std::max(multiprocessors * each, 1));
  return static_cast<int>(std::clamp<std::uint64_t>(wanted, 1, most));
}

const void* fused_for(std::int32_t ranks) noexcept {
  if (ranks == 2) return reinterpret_cast<const void*>(&fused<2>);
  if (ranks == 4) return reinterpret_cast<const void*>(&fused<4>);
  return ranks == 8 ? reinterpret_cast<const void*>(&fused<8>) : nullptr;
}

cudaStream_t stream_of(void* stream) noexcept { return static_cast<cudaStream_t>(stream); }

}  // namespace

extern "C" {

std::int32_t yard_fill(std::int32_t device, void* at, std::uint64_t n, std::int32_t narrow,
                       std::uint64_t seed, void* stream, Sentence* why) noexcept {
  const CurrentDevice current(device);
  const int blocks = blocks_for(reinterpret_cast<const void*>(&fill), device, n);
  fill<<<blocks, kBlockThreads, 0, stream_of(stream)>>>(at, n, narrow != 0, seed);
  return outcome(cudaGetLastError(), "filling a vector", why);
}

std::int32_t yard_wrong(std::int32_t device, const Vectors* vectors, std::uint64_t* wrong,
                        void* stream, Sentence* why) noexcept {
  const CurrentDevice current(device);
  unsigned long long* count = nullptr;
  cudaError_t error = cudaMalloc(&count, sizeof(*count));
  if (error != cudaSuccess) return outcome(error, "counting what is wrong", why);
  error = cudaMemsetAsync(count, 0, sizeof(*count), stream_of(stream));
  if (error == cudaSuccess) {
    const int blocks = blocks_for(reinterpret_cast<const void*>(&count_wrong), device, vectors->n);
    count_wrong<<<blocks, kBlockThreads, 0, stream_of(stream)>>>(*vectors, count);
    error = cudaGetLastError();
  }
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream_of(stream));
  if (error == cudaSuccess) {
    error = cudaMemcpy(wrong, count, sizeof(*wrong), cudaMemcpyDeviceToHost);
  }
  cudaFree(count);
  return outcome(error, "counting what is wrong", why);
}

std::int32_t yard_fused(std::int32_t device, const Vectors* vectors, void* stream,
                        Sentence* why) noexcept {
  const CurrentDevice current(device);
  const void* const kernel = fused_for(vectors->ranks);
  if (kernel == nullptr || vectors->narrow != 0 || vectors->n % 4 != 0) {
    return outcome(cudaErrorInvalidValue, "a sum by hand, of 2, 4 or 8 vectors of float4", why);
  }
  Vectors told = *vectors;
  void* arguments[] = {&told};
  const int blocks = blocks_for(kernel, device, told.n / 4);
  return outcome(cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(blocks)), dim3(kBlockThreads),
                                  arguments, 0, stream_of(stream)),
                 "a sum by hand", why);
}

std::int32_t yard_nothing(std::int32_t device, std::int32_t blocks, void* stream,
                          Sentence* why) noexcept {
  const CurrentDevice current(device);
  return outcome(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&nothing),
                                             dim3(static_cast<unsigned>(blocks)),
                                             dim3(kBlockThreads), nullptr, 0, stream_of(stream)),
                 "launching a kernel that does nothing", why);
}

std::int32_t yard_ping_pong(std::int32_t device, std::uint64_t* words, std::uint64_t turns,
                            void* stream, Sentence* why) noexcept {
  const CurrentDevice current(device);
  void* arguments[] = {&words, &turns};
  return outcome(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&ping_pong), dim3(2),
                                             dim3(1), arguments, 0, stream_of(stream)),
                 "passing a flag to and fro", why);
}

}  // extern "C"

}  // namespace coll::yardsticks

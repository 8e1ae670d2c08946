// SPDX-License-Identifier: Apache-2.0
// Sums of sparse vectors: their kernel for each kind of value, and how it is launched.
#include <algorithm>

#include "cuda/block_group.h"
#include "cuda/current_device.h"
#include "cuda/merger.h"
#include "cuda/relaxed_capture.h"
#include "cuda/sparse_library.h"
#include "cuda/sparse_values.h"

namespace coll::cuda {
namespace {

template <class Element>
__global__ void __launch_bounds__(kMergeThreads, 3)
    merge_stage(const __grid_constant__ Merge merge, MergeStage stage) {
  BlockGroup group;
  Merger<Element, AsItIs, BlockGroup>(group, merge, blockIdx.x, gridDim.x).run(stage);
}

template <class Element>
cudaError_t launch_stage(std::int32_t device, const Merge& merge, MergeStage stage,
                         cudaStream_t stream) noexcept {
  using Value = typename Element::Value;
  constexpr std::size_t kShared = merge_shared_bytes<Value>();
  // What a multiprocessor has room for at a time; blocks take tiles in turns.
  constexpr unsigned kEach = sizeof(Value) > 4 ? 1 : 3;
  int multiprocessors = 0;
  cudaError_t error =
      cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return error;
  error =
      cudaFuncSetAttribute(reinterpret_cast<const void*>(&merge_stage<Element>),
                           cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(kShared));
  if (error != cudaSuccess) return error;
  const unsigned most = static_cast<unsigned>(multiprocessors) * kEach, tiles = tiles_in(merge.n);
  const unsigned blocks = std::min(tiles, most);
  merge_stage<Element><<<blocks, kMergeThreads, kShared, stream>>>(merge, stage);
  return cudaGetLastError();
}

}  // namespace

extern "C" {

std::int32_t coll_cuda_merge(std::int32_t device, const Merge* merge, std::int32_t stage,
                             std::int32_t dtype, void* stream, Sentence* why) noexcept {
  const CurrentDevice current(device);
  cudaError_t error = current.error();
  const auto launch = [&]<class Element>() {
    if (error != cudaSuccess || merge->n == 0) return;
    error = launch_stage<Element>(device, *merge, static_cast<MergeStage>(stage),
                                  static_cast<cudaStream_t>(stream));
  };
  if (!use_values(static_cast<Dtype>(dtype), launch)) error = cudaErrorInvalidDeviceFunction;
  return outcome(error, "adding up sparse vectors", why);
}

std::int32_t coll_cuda_clear(std::int32_t device, void* memory, std::size_t bytes, void* stream,
                             Sentence* why) noexcept {
  const CurrentDevice current(device);
  cudaError_t error = current.error();
  if (error == cudaSuccess) {
    error = cudaMemsetAsync(memory, 0, bytes, static_cast<cudaStream_t>(stream));
  }
  return outcome(error, "clearing memory of a GPU", why);
}

std::int32_t coll_cuda_download(std::int32_t device, void* to, const void* from, std::size_t bytes,
                                void* stream, Sentence* why) noexcept {
  const RelaxedCapture relaxed;  // to memory that is not pinned
  const CurrentDevice current(device);
  auto* const on = static_cast<cudaStream_t>(stream);
  cudaError_t error = current.error();
  if (error == cudaSuccess) error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, on);
  if (error == cudaSuccess) error = cudaStreamSynchronize(on);
  return outcome(error, "copying from a GPU", why);
}

}  // extern "C"

}  // namespace coll::cuda

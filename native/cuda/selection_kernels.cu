// SPDX-License-Identifier: Apache-2.0
// Selections: their kernel for each Kind, and how it is launched.
#include "cuda/block_group.h"
#include "cuda/current_device.h"
#include "cuda/selection_call.h"
#include "cuda/selector.h"

namespace coll::cuda {
namespace {

// Two blocks a multiprocessor, so that one reads while the other one scans.
constexpr unsigned kBlocksEach = 2;

template <class Kind>
__global__ void __launch_bounds__(kBlockThreads, kBlocksEach)
    select_stage(const __grid_constant__ Selection selection, Stage stage) {
  BlockGroup group;
  Selector<Kind, AsItIs, BlockGroup>(group, selection, blockIdx.x, gridDim.x).run(stage);
}

// What is seldom more than a part of the device is no reason for all of its blocks.
unsigned blocks_for(const Selection& s, unsigned most) noexcept {
  return s.chunks < most ? s.chunks : most;
}

template <class Kind>
cudaError_t launch_stages(std::int32_t device, const SelectionCall& call,
                          cudaStream_t stream) noexcept {
  int multiprocessors = 0;
  cudaError_t error =
      cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return error;
  std::size_t zeros = 0;
  const Selection s = selection_of<Kind>(call, kBlockThreads, zeros);
  error = cudaMemsetAsync(call.room, 0, zeros, stream);
  const unsigned blocks = blocks_for(s, static_cast<unsigned>(multiprocessors) * kBlocksEach);
  const auto launch = [&](const Selection& told, Stage stage) {
    select_stage<Kind><<<blocks, kBlockThreads, sizeof(SelectionShared), stream>>>(told, stage);
    error = cudaGetLastError();
    return error == cudaSuccess;
  };
  if (error == cudaSuccess) in_stages(s, Kind::Magnitude::kBits, Kind::kFed, launch);
  return error;
}

}  // namespace

extern "C" {

std::size_t coll_cuda_select_room(const SelectionCall* call) noexcept {
  return bytes_of_room(*call, kBlockThreads);
}

std::int32_t coll_cuda_select(std::int32_t device, const SelectionCall* call, void* stream,
                              Sentence* why) noexcept {
  const CurrentDevice current(device);
  cudaError_t error = current.error();
  const auto launch = [&]<class Kind>() {
    if (error == cudaSuccess && call->k > 0) {
      error = launch_stages<Kind>(device, *call, static_cast<cudaStream_t>(stream));
    }
  };
  if (!use_selection(*call, launch)) error = cudaErrorInvalidDeviceFunction;
  return outcome(error, "selecting the largest elements", why);
}

}  // extern "C"

}  // namespace coll::cuda

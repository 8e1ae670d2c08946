// SPDX-License-Identifier: Apache-2.0
// Memory of one device that another process opens, or another device of this one, of the library of
// kernels.
#include <sys/random.h>

#include <chrono>
#include <cstring>

#include "cuda/current_device.h"
#include "cuda/library.h"
#include "cuda/relaxed_capture.h"

namespace coll::cuda {
namespace {

static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(MemoryHandle::words));

std::uint64_t this_process() noexcept {
  static const std::uint64_t name = [] {
    std::uint64_t drawn = 0;
    if (::getrandom(&drawn, sizeof(drawn), 0) == sizeof(drawn)) return drawn;
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    return static_cast<std::uint64_t>(now);
  }();
  return name;
}

// A process cannot open what it has exported itself: there addresses are good for all devices.
cudaError_t reach_within(std::int32_t device, std::int32_t other) noexcept {
  if (device == other) return cudaSuccess;
  int can = 0;
  cudaError_t error = cudaDeviceCanAccessPeer(&can, device, other);
  if (error == cudaSuccess && can == 0) error = cudaErrorPeerAccessUnsupported;
  if (error == cudaSuccess) error = cudaDeviceEnablePeerAccess(other, 0);
  if (error != cudaErrorPeerAccessAlreadyEnabled) return error;
  cudaGetLastError();
  return cudaSuccess;
}

}  // namespace

extern "C" {

std::int32_t coll_cuda_export(std::int32_t device, void* memory, MemoryHandle* handle,
                              Sentence* why) noexcept {
  const RelaxedCapture relaxed;
  const CurrentDevice current(device);
  cudaIpcMemHandle_t words{};
  cudaError_t error = current.error();
  if (error == cudaSuccess) error = cudaIpcGetMemHandle(&words, memory);
  *handle = {};
  std::memcpy(handle->words, &words, sizeof(words));
  handle->process = this_process();
  handle->device = device;
  handle->memory = memory;
  return outcome(error, "letting other processes reach memory of a GPU", why);
}

std::int32_t coll_cuda_open(std::int32_t device, const MemoryHandle* handle, void** memory,
                            Sentence* why) noexcept {
  const RelaxedCapture relaxed;
  const CurrentDevice current(device);
  cudaError_t error = current.error();
  if (error == cudaSuccess && handle->process == this_process()) {
    error = reach_within(device, handle->device);
    *memory = handle->memory;
  } else if (error == cudaSuccess) {
    cudaIpcMemHandle_t words;
    std::memcpy(&words, handle->words, sizeof(words));
    error = cudaIpcOpenMemHandle(memory, words, cudaIpcMemLazyEnablePeerAccess);
  }
  return outcome(error, "reaching memory of another GPU", why);
}

void coll_cuda_close(std::int32_t device, const MemoryHandle* handle, void* memory) noexcept {
  const RelaxedCapture relaxed;
  if (handle->process == this_process()) return;
  const CurrentDevice current(device);
  if (current.error() == cudaSuccess) cudaIpcCloseMemHandle(memory);
  cudaGetLastError();
}

}  // extern "C"

}  // namespace coll::cuda

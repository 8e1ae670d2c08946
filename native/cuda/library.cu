// SPDX-License-Identifier: Apache-2.0
// Devices and launches. Memory and streams are in library_memory.cu.
#include <cstring>

#include "cuda/block_group.h"
#include "cuda/current_device.h"
#include "cuda/kernel_table.h"
#include "cuda/library.h"
#include "cuda/relaxed_capture.h"

namespace coll::cuda {
namespace {

Kernel kernel_of(std::int32_t dtype, std::int32_t op) noexcept {
  if (!exists(static_cast<Dtype>(dtype))) return {};
  return op == kMovesOnly ? copy_kernel_of(static_cast<Dtype>(dtype))
                          : fold_kernel_of(static_cast<Dtype>(dtype), static_cast<Reduction>(op));
}

// A block may take more shared memory than a kernel has by itself only where that was said before.
cudaError_t allow_shared(const void* function, std::size_t shared) noexcept {
  constexpr std::size_t kUsual = 48 << 10;
  if (shared <= kUsual) return cudaSuccess;
  return cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(shared));
}

cudaError_t load(const Kernel& kernel) noexcept {
  if (kernel.function == nullptr) return cudaSuccess;
  cudaFuncAttributes attributes;
  const cudaError_t error = cudaFuncGetAttributes(&attributes, kernel.function);
  return error != cudaSuccess ? error : cudaFuncGetAttributes(&attributes, kernel.direct);
}

cudaError_t launch_together(const Kernel& kernel, Launch launch, std::size_t shared,
                            void* stream) noexcept {
  launch.units = kernel.units;
  void* arguments[] = {&launch};
  const cudaError_t error = allow_shared(kernel.function, shared);
  if (error != cudaSuccess) return error;
  return cudaLaunchCooperativeKernel(
      kernel.function,
      dim3(static_cast<unsigned>(launch.channels), static_cast<unsigned>(launch.ranks_here)),
      dim3(launch.threads), arguments, shared, static_cast<cudaStream_t>(stream));
}

cudaError_t launch_directly(const Kernel& kernel, Direct direct, void* stream) noexcept {
  direct.units = kernel.units;
  void* arguments[] = {&direct};
  const auto ranks = static_cast<unsigned>(direct.in_turn != 0 ? 1 : direct.ranks);
  return cudaLaunchKernel(kernel.direct, dim3(direct.blocks, ranks), dim3(direct.threads),
                          arguments, 0, static_cast<cudaStream_t>(stream));
}

}  // namespace

extern "C" {

std::uint32_t coll_cuda_version() noexcept { return kLibraryVersion; }

std::int32_t coll_cuda_devices(Sentence* why) noexcept {
  int count = 0;
  return outcome(cudaGetDeviceCount(&count), "looking for GPUs", why) == 0 ? count : 0;
}

std::int32_t coll_cuda_device(std::int32_t device, DeviceFacts* facts, Sentence* why) noexcept {
  cudaDeviceProp found;
  const cudaError_t error = cudaGetDeviceProperties(&found, device);
  if (error != cudaSuccess) return outcome(error, "asking a GPU what it is", why);
  *facts = {};
  std::strncpy(facts->name, found.name, sizeof(facts->name) - 1);
  facts->major = found.major;
  facts->minor = found.minor;
  facts->multiprocessors = found.multiProcessorCount;
  facts->cooperative = found.cooperativeLaunch;
  facts->memory = found.totalGlobalMem;
  facts->shared_bytes = found.sharedMemPerBlockOptin;
  std::memcpy(facts->uuid, &found.uuid, sizeof(facts->uuid));
  facts->exports = found.integrated == 0 && found.unifiedAddressing != 0;
  return 0;
}

std::int32_t coll_cuda_load(std::int32_t device, Sentence* why) noexcept {
  const RelaxedCapture relaxed;  // modules may be loaded
  const CurrentDevice current(device);
  cudaError_t error = current.error();
  for (int dtype = 0; dtype < kDtypes; ++dtype) {
    for (int op = kMovesOnly; op < kReductions && error == cudaSuccess; ++op) {
      error = load(kernel_of(dtype, op));
    }
  }
  return outcome(error, "loading the kernels", why);
}

std::int32_t coll_cuda_blocks(std::int32_t device, std::int32_t dtype, std::int32_t op,
                              std::size_t shared) noexcept {
  const RelaxedCapture relaxed;
  const CurrentDevice current(device);
  const Kernel kernel = kernel_of(dtype, op);
  int multiprocessors = 0, each = 0;
  if (current.error() != cudaSuccess || kernel.function == nullptr ||
      allow_shared(kernel.function, shared) != cudaSuccess ||
      cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device) !=
          cudaSuccess ||
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel.function, kBlockThreads,
                                                    shared) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return multiprocessors * each;
}

std::int32_t coll_cuda_launch(std::int32_t device, const void* launch, std::int32_t dtype,
                              std::int32_t op, std::size_t shared, void* stream,
                              Sentence* why) noexcept {
  const CurrentDevice current(device);
  const Kernel kernel = kernel_of(dtype, op);
  cudaError_t error = current.error();
  if (error == cudaSuccess && kernel.function == nullptr) error = cudaErrorInvalidDeviceFunction;
  if (error == cudaSuccess) {
    error = launch_together(kernel, *static_cast<const Launch*>(launch), shared, stream);
  }
  return outcome(error, "launching a collective", why);
}

std::int32_t coll_cuda_direct_blocks(std::int32_t device, std::int32_t dtype,
                                     std::int32_t op) noexcept {
  const CurrentDevice current(device);
  const Kernel kernel = kernel_of(dtype, op);
  int multiprocessors = 0;
  if (current.error() != cudaSuccess || kernel.function == nullptr ||
      cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device) !=
          cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return multiprocessors * kernel.direct_blocks;
}

std::int32_t coll_cuda_launch_directly(std::int32_t device, const void* direct, std::int32_t dtype,
                                       std::int32_t op, void* stream, Sentence* why) noexcept {
  const CurrentDevice current(device);
  const Kernel kernel = kernel_of(dtype, op);
  cudaError_t error = current.error();
  if (error == cudaSuccess && kernel.direct == nullptr) error = cudaErrorInvalidDeviceFunction;
  if (error == cudaSuccess) {
    error = launch_directly(kernel, *static_cast<const Direct*>(direct), stream);
  }
  return outcome(error, "launching a collective", why);
}

}  // extern "C"

}  // namespace coll::cuda

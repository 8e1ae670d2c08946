// SPDX-License-Identifier: Apache-2.0
// Memory and streams of the library of kernels.
#include <cstring>

#include "cuda/current_device.h"
#include "cuda/library.h"
#include "cuda/relaxed_capture.h"

namespace coll::cuda {
namespace {

// An event that is there for one use.
class Moment {
 public:
  explicit Moment(cudaError_t& error) noexcept {
    error = cudaEventCreateWithFlags(&event_, cudaEventDisableTiming);
    there_ = error == cudaSuccess;
  }
  // The device goes on to remember it as long as somebody waits for it.
  ~Moment() {
    if (there_) cudaEventDestroy(event_);
  }
  Moment(const Moment&) = delete;
  Moment& operator=(const Moment&) = delete;
  cudaEvent_t get() const noexcept { return event_; }

 private:
  cudaEvent_t event_{};
  bool there_ = false;
};

// Does `enqueue` on a stream of its own, and waits for it.
template <class Enqueue>
cudaError_t at_once(Enqueue enqueue) noexcept {
  cudaError_t error = cudaSuccess;
  const OwnStream stream(error);
  if (error == cudaSuccess) error = enqueue(stream.get());
  return error == cudaSuccess ? cudaStreamSynchronize(stream.get()) : error;
}

}  // namespace

extern "C" {

std::int32_t coll_cuda_allocate(std::int32_t device, std::size_t bytes, void** memory,
                                Sentence* why) noexcept {
  const RelaxedCapture relaxed;
  const CurrentDevice current(device);
  cudaError_t error = current.error();
  if (error == cudaSuccess) error = cudaMalloc(memory, bytes);
  if (error == cudaSuccess) {
    error =
        at_once([&](cudaStream_t stream) { return cudaMemsetAsync(*memory, 0, bytes, stream); });
    if (error != cudaSuccess) cudaFree(*memory);
  }
  return outcome(error, "taking memory of a GPU", why);
}

void coll_cuda_free(std::int32_t device, void* memory) noexcept {
  const RelaxedCapture relaxed;
  const CurrentDevice current(device);
  if (current.error() == cudaSuccess) cudaFree(memory);
  cudaGetLastError();
}

std::int32_t coll_cuda_allocate_host(std::size_t bytes, void** memory, Sentence* why) noexcept {
  const RelaxedCapture relaxed;
  const cudaError_t error =
      cudaHostAlloc(memory, bytes, cudaHostAllocMapped | cudaHostAllocPortable);
  if (error == cudaSuccess) std::memset(*memory, 0, bytes);
  return outcome(error, "taking memory that GPUs see", why);
}

void coll_cuda_free_host(void* memory) noexcept {
  const RelaxedCapture relaxed;
  cudaFreeHost(memory);
  cudaGetLastError();
}

std::int32_t coll_cuda_upload(std::int32_t device, void* to, const void* from, std::size_t bytes,
                              Sentence* why) noexcept {
  const RelaxedCapture relaxed;
  const CurrentDevice current(device);
  cudaError_t error = current.error();
  if (error == cudaSuccess) {
    error = at_once([&](cudaStream_t stream) {
      return cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream);
    });
  }
  return outcome(error, "copying to a GPU", why);
}

std::int32_t coll_cuda_copy(std::int32_t device, void* to, const void* from, std::size_t bytes,
                            void* stream, Sentence* why) noexcept {
  const RelaxedCapture relaxed;  // to or from memory that is not pinned
  const CurrentDevice current(device);
  auto* const on = static_cast<cudaStream_t>(stream);
  cudaError_t error = current.error();
  if (error == cudaSuccess) error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, on);
  if (error == cudaSuccess) error = cudaStreamSynchronize(on);
  return outcome(error, "copying between a GPU and the host", why);
}

std::int32_t coll_cuda_enqueue_copy(std::int32_t device, void* to, const void* from,
                                    std::size_t bytes, void* stream, Sentence* why) noexcept {
  const CurrentDevice current(device);
  cudaError_t error = current.error();
  if (error == cudaSuccess) {
    error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, static_cast<cudaStream_t>(stream));
  }
  return outcome(error, "copying between a GPU and the host", why);
}

std::int32_t coll_cuda_owner(const void* pointer) noexcept {
  cudaPointerAttributes found;
  if (cudaPointerGetAttributes(&found, pointer) != cudaSuccess) {
    cudaGetLastError();
    return -1;
  }
  const bool devices = found.type == cudaMemoryTypeDevice || found.type == cudaMemoryTypeManaged;
  return devices ? found.device : -1;
}

std::int32_t coll_cuda_follow(std::int32_t device, void* stream, void* other,
                              Sentence* why) noexcept {
  const CurrentDevice current(device);
  cudaError_t error = current.error();
  if (error == cudaSuccess && stream != other) {
    const Moment moment(error);
    if (error == cudaSuccess) {
      error = cudaEventRecord(moment.get(), static_cast<cudaStream_t>(other));
    }
    if (error == cudaSuccess) {
      error = cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), moment.get());
    }
  }
  return outcome(error, "ordering one stream after another", why);
}

std::int32_t coll_cuda_synchronize(std::int32_t device, void* stream, Sentence* why) noexcept {
  const CurrentDevice current(device);
  cudaError_t error = current.error();
  if (error == cudaSuccess) error = cudaStreamSynchronize(static_cast<cudaStream_t>(stream));
  return outcome(error, "waiting for a stream", why);
}

}  // extern "C"

}  // namespace coll::cuda

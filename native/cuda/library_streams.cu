// SPDX-License-Identifier: Apache-2.0
// Captures and the order of streams, of the library of kernels. In a capture what waits for an
// event and what tells of it are nodes of the graph: so each replay does, beside launches that are
// in no graph. Without that they would name a moment of the capture, which no replay knows.
#include "cuda/current_device.h"
#include "cuda/library.h"

namespace coll::cuda {
namespace {

cudaError_t captured(cudaStream_t stream, bool& yes) noexcept {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t error = cudaStreamIsCapturing(stream, &status);
  yes = status == cudaStreamCaptureStatusActive;
  return error;
}

}  // namespace

extern "C" {

std::int32_t coll_cuda_stream(std::int32_t device, void** stream, Sentence* why) noexcept {
  const CurrentDevice current(device);
  cudaError_t error = current.error();
  cudaStream_t made{};
  if (error == cudaSuccess) error = cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
  *stream = made;
  return outcome(error, "making a stream", why);
}

void coll_cuda_free_stream(std::int32_t device, void* stream) noexcept {
  const CurrentDevice current(device);
  if (current.error() == cudaSuccess) cudaStreamDestroy(static_cast<cudaStream_t>(stream));
  cudaGetLastError();
}

std::int32_t coll_cuda_capture(std::int32_t device, void* stream, std::uint64_t* capture,
                               Sentence* why) noexcept {
  const CurrentDevice current(device);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long number = 0;
  cudaError_t error = current.error();
  if (error == cudaSuccess) {
    error = cudaStreamGetCaptureInfo(static_cast<cudaStream_t>(stream), &status, &number);
  }
  if (error == cudaSuccess && status == cudaStreamCaptureStatusInvalidated) {
    error = cudaErrorStreamCaptureInvalidated;
  }
  *capture = status == cudaStreamCaptureStatusActive ? number : 0;
  return outcome(error, "asking whether a stream is captured into a graph", why);
}

std::int32_t coll_cuda_event(std::int32_t device, void** event, Sentence* why) noexcept {
  const CurrentDevice current(device);
  cudaError_t error = current.error();
  cudaEvent_t made{};
  if (error == cudaSuccess) error = cudaEventCreateWithFlags(&made, cudaEventDisableTiming);
  *event = made;
  return outcome(error, "making an event", why);
}

void coll_cuda_free_event(std::int32_t device, void* event) noexcept {
  const CurrentDevice current(device);
  if (current.error() == cudaSuccess) cudaEventDestroy(static_cast<cudaEvent_t>(event));
  cudaGetLastError();
}

std::int32_t coll_cuda_mark(std::int32_t device, void* event, void* stream,
                            Sentence* why) noexcept {
  const CurrentDevice current(device);
  auto* const on = static_cast<cudaStream_t>(stream);
  bool in_graph = false;
  cudaError_t error = current.error();
  if (error == cudaSuccess) error = captured(on, in_graph);
  if (error == cudaSuccess) {
    error = cudaEventRecordWithFlags(static_cast<cudaEvent_t>(event), on,
                                     in_graph ? cudaEventRecordExternal : cudaEventRecordDefault);
  }
  return outcome(error, "telling when a stream is done", why);
}

std::int32_t coll_cuda_after(std::int32_t device, void* stream, void* event,
                             Sentence* why) noexcept {
  const CurrentDevice current(device);
  auto* const on = static_cast<cudaStream_t>(stream);
  bool in_graph = false;
  cudaError_t error = current.error();
  if (error == cudaSuccess) error = captured(on, in_graph);
  if (error == cudaSuccess) {
    error = cudaStreamWaitEvent(on, static_cast<cudaEvent_t>(event),
                                in_graph ? cudaEventWaitExternal : cudaEventWaitDefault);
  }
  return outcome(error, "ordering a stream after an event", why);
}

std::int32_t coll_cuda_reached(std::int32_t device, void* event, Sentence* why) noexcept {
  const CurrentDevice current(device);
  cudaError_t error = current.error();
  if (error == cudaSuccess) error = cudaEventQuery(static_cast<cudaEvent_t>(event));
  if (error == cudaErrorNotReady) {
    cudaGetLastError();
    return 0;
  }
  return outcome(error, "asking whether a stream is done", why) == 0 ? 1 : -1;
}

}  // extern "C"

}  // namespace coll::cuda

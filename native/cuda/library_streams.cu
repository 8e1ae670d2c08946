// SPDX-License-Identifier: Apache-2.0
// Captures and the order of streams, of the library of kernels. In a capture what waits for an
// event and what tells of it are nodes of the graph: so each replay does, beside launches that are
// in no graph. Without that they would name a moment of the capture, which no replay knows.
#include "cuda/current_device.h"
#include "cuda/library.h"
#include "cuda/relaxed_capture.h"

namespace coll::cuda {
namespace {

cudaError_t captured(cudaStream_t stream, bool& yes) noexcept {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t error = cudaStreamIsCapturing(stream, &status);
  yes = status == cudaStreamCaptureStatusActive;
  return error;
}

// The graph that a stream is being captured into, and what comes before its next node there.
struct Capture {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long number = 0;
  cudaGraph_t graph{};
  const cudaGraphNode_t* before = nullptr;
  std::size_t count = 0;

  bool active() const noexcept { return status == cudaStreamCaptureStatusActive; }
};
cudaError_t capture_of(cudaStream_t stream, Capture& found) noexcept {
  const cudaGraphEdgeData* edges = nullptr;
  return cudaStreamGetCaptureInfo(stream, &found.status, &found.number, &found.graph, &found.before,
                                  &edges, &found.count);
}

cudaGraphNode_t node_of(void* node) noexcept { return static_cast<cudaGraphNode_t>(node); }

// Behind what is on the stream, without standing in the way of what comes there next.
cudaError_t tell_in_graph(const Capture& capture, cudaEvent_t event, CapturedTurn& turn) noexcept {
  cudaGraphNode_t launched = capture.before[0], told = node_of(turn.told);
  cudaError_t error = cudaSuccess;
  if (turn.capture == capture.number) {
    error = cudaGraphAddDependencies(capture.graph, &launched, &told, nullptr, 1);
  } else {
    error = cudaGraphAddEventRecordNode(&told, capture.graph, &launched, 1, event);
  }
  if (error == cudaSuccess) turn = {capture.number, launched, told};
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

std::int32_t coll_cuda_take_turn(std::int32_t device, void* stream, void* event,
                                 const CapturedTurn* turn, Sentence* why) noexcept {
  const CurrentDevice current(device);
  auto* const on = static_cast<cudaStream_t>(stream);
  Capture capture;
  cudaError_t error = current.error();
  if (error == cudaSuccess) error = capture_of(on, capture);
  if (error == cudaSuccess && capture.active() && turn->capture == capture.number) {
    cudaGraphNode_t before = node_of(turn->launched);
    error = cudaStreamUpdateCaptureDependencies(on, &before, nullptr, 1,
                                                cudaStreamAddCaptureDependencies);
  } else if (error == cudaSuccess) {
    error = cudaStreamWaitEvent(on, static_cast<cudaEvent_t>(event),
                                capture.active() ? cudaEventWaitExternal : cudaEventWaitDefault);
  }
  return outcome(error, "letting a launch wait for its turn", why);
}

std::int32_t coll_cuda_end_turn(std::int32_t device, void* stream, void* event, CapturedTurn* turn,
                                Sentence* why) noexcept {
  const CurrentDevice current(device);
  auto* const on = static_cast<cudaStream_t>(stream);
  Capture capture;
  cudaError_t error = current.error();
  if (error == cudaSuccess) error = capture_of(on, capture);
  if (error == cudaSuccess) {
    error = capture.active() && capture.count > 0
                ? tell_in_graph(capture, static_cast<cudaEvent_t>(event), *turn)
                : cudaEventRecord(static_cast<cudaEvent_t>(event), on);
  }
  return outcome(error, "telling that a launch has had its turn", why);
}

std::int32_t coll_cuda_reached(std::int32_t device, void* event, Sentence* why) noexcept {
  const RelaxedCapture relaxed;
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

// SPDX-License-Identifier: Apache-2.0
// Facts of a GPU, its streams, its memory as the host sees it, graphs and their times.
#include <cstring>

#include "cuda/current_device.h"
#include "gpu/yardsticks.h"

namespace coll::yardsticks {
namespace {

using cuda::CurrentDevice;
using cuda::outcome;

// An event with a time, as long as it is needed.
class Moment {
 public:
  explicit Moment(cudaError_t& error) noexcept {
    if (error == cudaSuccess) error = cudaEventCreate(&event_);
    there_ = error == cudaSuccess;
  }
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

std::int32_t attribute(cudaDeviceAttr which, std::int32_t device) noexcept {
  int found = 0;
  if (cudaDeviceGetAttribute(&found, which, device) != cudaSuccess) cudaGetLastError();
  return found;
}

cudaStream_t stream_of(void* stream) noexcept { return static_cast<cudaStream_t>(stream); }

}  // namespace

extern "C" {

std::int32_t yard_facts(std::int32_t device, Facts* facts, Sentence* why) noexcept {
  const CurrentDevice current(device);
  *facts = {};
  cudaDeviceProp found;
  cudaError_t error = cudaGetDeviceProperties(&found, device);
  if (error == cudaSuccess) error = cudaDriverGetVersion(&facts->driver);
  if (error == cudaSuccess) error = cudaRuntimeGetVersion(&facts->runtime);
  std::size_t free = 0, all = 0;
  if (error == cudaSuccess) error = cudaMemGetInfo(&free, &all);
  if (error != cudaSuccess) return outcome(error, "asking a GPU what it is", why);
  std::strncpy(facts->name, found.name, sizeof(facts->name) - 1);
  facts->multiprocessors = found.multiProcessorCount;
  facts->clock_mhz = attribute(cudaDevAttrClockRate, device) / 1000;
  facts->memory_clock_mhz = attribute(cudaDevAttrMemoryClockRate, device) / 1000;
  facts->bus_bits = attribute(cudaDevAttrGlobalMemoryBusWidth, device);
  facts->memory = all;
  facts->free = free;
  facts->cache = static_cast<std::uint64_t>(attribute(cudaDevAttrL2CacheSize, device));
  return 0;
}

// One that the default stream does not wait for.
std::int32_t yard_stream(std::int32_t device, void** stream, Sentence* why) noexcept {
  const CurrentDevice current(device);
  cudaStream_t made = nullptr;
  const cudaError_t error = cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
  *stream = made;
  return outcome(error, "making a stream", why);
}

void yard_end_stream(std::int32_t device, void* stream) noexcept {
  const CurrentDevice current(device);
  cudaStreamDestroy(stream_of(stream));
  cudaGetLastError();
}

std::int32_t yard_synchronize(std::int32_t device, Sentence* why) noexcept {
  const CurrentDevice current(device);
  return outcome(cudaDeviceSynchronize(), "waiting for a GPU", why);
}

std::int32_t yard_write(std::int32_t device, void* to, const void* from, std::size_t bytes,
                        Sentence* why) noexcept {
  const CurrentDevice current(device);
  cudaError_t error = cudaDeviceSynchronize();
  if (error == cudaSuccess) error = cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice);
  // What comes from ordinary memory may still be on its way.
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
  return outcome(error, "writing to a GPU", why);
}

std::int32_t yard_read(std::int32_t device, void* to, const void* from, std::size_t bytes,
                       Sentence* why) noexcept {
  const CurrentDevice current(device);
  cudaError_t error = cudaDeviceSynchronize();
  if (error == cudaSuccess) error = cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost);
  return outcome(error, "reading from a GPU", why);
}

std::int32_t yard_copy(std::int32_t device, void* to, const void* from, std::size_t bytes,
                       void* stream, Sentence* why) noexcept {
  const CurrentDevice current(device);
  return outcome(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_of(stream)),
                 "copying on a GPU", why);
}

std::int32_t yard_poison(std::int32_t device, void* at, std::size_t bytes, void* stream,
                         Sentence* why) noexcept {
  const CurrentDevice current(device);
  return outcome(cudaMemsetAsync(at, 0xff, bytes, stream_of(stream)), "poisoning memory", why);
}

// Relaxed: other threads enqueue, too, and may ask for memory meanwhile.
std::int32_t yard_capture(std::int32_t device, void* stream, Sentence* why) noexcept {
  const CurrentDevice current(device);
  return outcome(cudaStreamBeginCapture(stream_of(stream), cudaStreamCaptureModeRelaxed),
                 "capturing a stream", why);
}

std::int32_t yard_captured(std::int32_t device, void* stream, void** graph,
                           Sentence* why) noexcept {
  const CurrentDevice current(device);
  cudaGraph_t found = nullptr;
  cudaGraphExec_t made = nullptr;
  cudaError_t error = cudaStreamEndCapture(stream_of(stream), &found);
  if (error == cudaSuccess) error = cudaGraphInstantiate(&made, found, 0);
  if (found != nullptr) cudaGraphDestroy(found);
  *graph = made;
  return outcome(error, "making a graph of what was captured", why);
}

void yard_end_graph(std::int32_t device, void* graph) noexcept {
  const CurrentDevice current(device);
  cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph));
  cudaGetLastError();
}

std::int32_t yard_replay(std::int32_t device, void* graph, std::int32_t times, void* stream,
                         double* seconds, Sentence* why) noexcept {
  const CurrentDevice current(device);
  cudaError_t error = current.error();
  const Moment begin(error), end(error);
  if (error == cudaSuccess) error = cudaEventRecord(begin.get(), stream_of(stream));
  for (std::int32_t i = 0; i < times && error == cudaSuccess; ++i) {
    error = cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), stream_of(stream));
  }
  if (error == cudaSuccess) error = cudaEventRecord(end.get(), stream_of(stream));
  if (error == cudaSuccess) error = cudaEventSynchronize(end.get());
  float milliseconds = 0;
  if (error == cudaSuccess) error = cudaEventElapsedTime(&milliseconds, begin.get(), end.get());
  *seconds = static_cast<double>(milliseconds) / 1e3;
  return outcome(error, "replaying a graph", why);
}

}  // extern "C"

}  // namespace coll::yardsticks

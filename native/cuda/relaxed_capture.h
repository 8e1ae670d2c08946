// SPDX-License-Identifier: Apache-2.0
// For the library of kernels: what CUDA refuses to all threads while one of them captures a stream
// in the global mode, such as to take memory, is allowed to a thread in the relaxed one. A capture
// that such calls have nothing to do with, as of another rank or of the program, is not harmed by
// them.
#pragma once

#include <cuda_runtime.h>

namespace coll::cuda {

class RelaxedCapture {
 public:
  RelaxedCapture() noexcept { cudaThreadExchangeStreamCaptureMode(&before_); }
  ~RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&before_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode before_ = cudaStreamCaptureModeRelaxed;  // swapped with the thread's
};

// A stream that is there for one piece of work. Not the default one: no capture has anything to do
// with it, while all of them forbid the default one.
class OwnStream {
 public:
  explicit OwnStream(cudaError_t& error) noexcept {
    error = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
    there_ = error == cudaSuccess;
  }
  ~OwnStream() {
    if (there_) cudaStreamDestroy(stream_);
  }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  cudaStream_t get() const noexcept { return stream_; }

 private:
  cudaStream_t stream_{};
  bool there_ = false;
};

}  // namespace coll::cuda

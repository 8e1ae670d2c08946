// SPDX-License-Identifier: Apache-2.0
// For the library of kernels: another current device for a while, and what went wrong in words.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>

#include "cuda/library.h"

namespace coll::cuda {

class CurrentDevice {
 public:
  explicit CurrentDevice(std::int32_t device) noexcept {
    error_ = cudaGetDevice(&before_);
    if (error_ == cudaSuccess && before_ != device) {
      error_ = cudaSetDevice(device);
      changed_ = error_ == cudaSuccess;
    }
  }
  ~CurrentDevice() {
    if (changed_) cudaSetDevice(before_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

  cudaError_t error() const noexcept { return error_; }

 private:
  int before_ = 0;
  bool changed_ = false;
  cudaError_t error_ = cudaSuccess;
};

// What a function of the library returns.
inline std::int32_t outcome(cudaError_t error, const char* doing, Sentence* why) noexcept {
  if (error == cudaSuccess) return 0;
  std::snprintf(why->text, sizeof(why->text), "%s: %s (%s)", doing, cudaGetErrorString(error),
                cudaGetErrorName(error));
  // It has been told: the next call must not hear of it.
  cudaGetLastError();
  return -1;
}

}  // namespace coll::cuda

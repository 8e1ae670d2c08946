// SPDX-License-Identifier: Apache-2.0
// Memory of a GPU, and of the host where GPUs see it, as long as its owner lives.
#pragma once

#include <cstddef>
#include <utility>

#include "cuda/opened.h"

namespace coll::cuda {

class DeviceMemory {
 public:
  DeviceMemory() = default;
  // Throws Error(system).
  DeviceMemory(int device, std::size_t bytes) : device_(device), bytes_(bytes) {
    Sentence why{};
    check(library().allocate(device, bytes, &memory_, &why), why);
  }
  DeviceMemory(DeviceMemory&& other) noexcept
      : device_(other.device_),
        bytes_(std::exchange(other.bytes_, 0)),
        memory_(std::exchange(other.memory_, nullptr)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(bytes_, other.bytes_);
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~DeviceMemory() {
    if (memory_ != nullptr) library().free(device_, memory_);
  }

  void upload(const void* from, std::size_t bytes) {
    Sentence why{};
    check(library().upload(device_, memory_, from, bytes, &why), why);
  }
  std::byte* get() const noexcept { return static_cast<std::byte*>(memory_); }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  int device_ = 0;
  std::size_t bytes_ = 0;
  void* memory_ = nullptr;
};

class HostBytes {
 public:
  HostBytes() = default;
  // Throws Error(system).
  explicit HostBytes(std::size_t bytes) : bytes_(bytes) {
    Sentence why{};
    check(library().allocate_host(bytes, &memory_, &why), why);
  }
  HostBytes(HostBytes&& other) noexcept
      : bytes_(std::exchange(other.bytes_, 0)), memory_(std::exchange(other.memory_, nullptr)) {}
  HostBytes& operator=(HostBytes&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~HostBytes() {
    if (memory_ != nullptr) library().free_host(memory_);
  }

  std::byte* get() const noexcept { return static_cast<std::byte*>(memory_); }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::size_t bytes_ = 0;
  void* memory_ = nullptr;
};

template <class T>
class HostMemory {
 public:
  HostMemory() : memory_(sizeof(T)) {}

  T* get() const noexcept { return reinterpret_cast<T*>(memory_.get()); }

 private:
  HostBytes memory_;
};

}  // namespace coll::cuda

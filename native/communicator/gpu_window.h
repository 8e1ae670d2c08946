// SPDX-License-Identifier: Apache-2.0
// What a rank that has a GPU of its own shows the others: one piece of its memory with its ticks
// and rings, which all of them open. It may go only when nobody uses it any more, and nobody waits
// for that: each of the others says in it that he has left, and what is left over when its owner
// leaves before is looked at again when the next one is made.
#pragma once

#include <cstddef>
#include <vector>

#include "cuda/assemble.h"
#include "cuda/device_memory.h"
#include "cuda/stream.h"

namespace coll {

// What a launch of ranks with windows has room for.
struct WindowShape {
  int channels = 1;

  // Rings of less than what ranks of one GPU have: there is one for each channel of any launch.
  static constexpr std::size_t kRing = 256 << 10, kPackets = 64 << 10;

  static constexpr std::size_t left() noexcept { return cuda::kTickBytes; }
  static constexpr std::size_t packets() noexcept {
    return left() + cuda::kMostRanks * sizeof(std::uint64_t);
  }
  constexpr std::size_t stages() const noexcept { return packets() + many() * kPackets; }
  constexpr std::size_t bytes() const noexcept { return stages() + many() * kRing; }

 private:
  constexpr std::size_t many() const noexcept { return static_cast<std::size_t>(channels); }
};

// A rank's own.
class GpuWindow {
 public:
  // Throws Error(system).
  GpuWindow(int rank, int ranks, int device, const WindowShape& shape);
  GpuWindow(const GpuWindow&) = delete;
  GpuWindow& operator=(const GpuWindow&) = delete;
  ~GpuWindow();

  const cuda::MemoryHandle& handle() const noexcept { return handle_; }
  std::byte* get() const noexcept { return memory_.get(); }

 private:
  int rank_, ranks_, device_;
  cuda::DeviceMemory memory_;
  cuda::MemoryHandle handle_{};
};

// Another rank's, as this one has opened it.
class PeerWindow {
 public:
  // Throws Error(system): it cannot be reached.
  PeerWindow(int rank, int device, const cuda::MemoryHandle& handle);
  PeerWindow(PeerWindow&& other) noexcept;
  PeerWindow& operator=(PeerWindow&&) = delete;
  // Says that this rank has left it: nothing of its uses the window any more.
  ~PeerWindow();

  std::byte* get() const noexcept { return static_cast<std::byte*>(memory_); }

 private:
  int rank_, device_;
  cuda::MemoryHandle handle_;
  void* memory_ = nullptr;
};

}  // namespace coll

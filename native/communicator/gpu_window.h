// SPDX-License-Identifier: Apache-2.0
// What a rank that has a GPU of its own shows the others: one piece of its memory with its ticks
// and rings, which all of them open. It may go only when nobody has it open any more, and nobody
// waits for that: whoever leaves the communicator has closed the windows of others before, so one
// whose owner leaves first is looked at again whenever a communicator is left or a window made.
#pragma once

#include <cstddef>
#include <memory>

#include "cuda/assemble.h"
#include "cuda/device_memory.h"
#include "transport/memory.h"
#include "transport/segment.h"

namespace coll {

// What a launch of ranks with windows has room for.
struct WindowShape {
  int channels = 1;

  // Rings of less than what ranks of one GPU have: there is one for each channel of any launch.
  static constexpr std::size_t kRing = 256 << 10, kPackets = 64 << 10;

  static constexpr std::size_t packets() noexcept { return cuda::kTickBytes; }
  constexpr std::size_t stages() const noexcept { return packets() + many() * kPackets; }
  constexpr std::size_t bytes() const noexcept { return stages() + many() * kRing; }

 private:
  constexpr std::size_t many() const noexcept { return static_cast<std::size_t>(channels); }
};

// Who may have a window open: the other ranks of a communicator. The memory that these share tells
// which of them have left it, or died, also after its owner has.
struct WindowUsers {
  std::shared_ptr<const Memory> memory;
  Segment segment;
  int rank = 0, ranks = 0;  // the owner is no user

  bool all_have_left() const noexcept;
};

// Frees the windows of this process whose owners and users have left.
void free_left_windows() noexcept;

// A rank's own.
class GpuWindow {
 public:
  // Throws Error(system).
  GpuWindow(int device, const WindowShape& shape, WindowUsers users);
  GpuWindow(const GpuWindow&) = delete;
  GpuWindow& operator=(const GpuWindow&) = delete;
  ~GpuWindow();

  const cuda::MemoryHandle& handle() const noexcept { return handle_; }
  std::byte* get() const noexcept { return memory_.get(); }

 private:
  WindowUsers users_;
  cuda::DeviceMemory memory_;
  cuda::MemoryHandle handle_{};
};

// Another rank's, as this one has opened it.
class PeerWindow {
 public:
  // Throws Error(system): it cannot be reached.
  PeerWindow(int device, const cuda::MemoryHandle& handle);
  PeerWindow(PeerWindow&& other) noexcept;
  PeerWindow& operator=(PeerWindow&&) = delete;
  // Nothing of this rank uses it any more.
  ~PeerWindow();

  std::byte* get() const noexcept { return static_cast<std::byte*>(memory_); }

 private:
  int device_;
  cuda::MemoryHandle handle_;
  void* memory_ = nullptr;
};

}  // namespace coll

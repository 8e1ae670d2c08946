// SPDX-License-Identifier: Apache-2.0
// Copies in one direction between a GPU and memory of the host, on a stream of their own: two slots
// of memory take turns, so that one is used while the other one is filled or emptied.
#pragma once

#include <array>
#include <cstddef>

#include "cuda/device_memory.h"
#include "cuda/event.h"
#include "cuda/stream.h"

namespace coll {

inline constexpr std::size_t kLaneSlots = 2;

class GpuLane {
 public:
  // Throws Error(system), as all that enqueues.
  explicit GpuLane(int device);
  GpuLane(const GpuLane&) = delete;
  GpuLane& operator=(const GpuLane&) = delete;
  // Waits until the slots are left alone.
  ~GpuLane();

  // So many bytes of each slot. What is under way is waited for where they have to grow.
  void reserve(std::size_t bytes);
  std::byte* memory(std::size_t slot) const noexcept { return slots_[slot].memory.get(); }

  // What is copied from now on comes after what is on the stream now; and the other way round.
  void follow(void* stream);
  void lead(void* stream);
  void copy(void* to, const void* from, std::size_t bytes);
  // What was enqueued so far is the slot's; and whether all that was is done.
  void mark(std::size_t slot) { slots_[slot].moment.mark(stream_.get()); }
  bool done(std::size_t slot) const { return slots_[slot].moment.reached(); }

 private:
  struct Slot {
    explicit Slot(int device) : moment(device) {}
    cuda::Event moment;
    cuda::HostBytes memory;
  };

  int device_;
  cuda::Stream stream_;
  std::array<Slot, kLaneSlots> slots_;
};

}  // namespace coll

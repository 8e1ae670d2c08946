// SPDX-License-Identifier: Apache-2.0
#include "communicator/gpu_lane.h"

#include <bit>

namespace coll {

using cuda::library;

GpuLane::GpuLane(int device)
    : device_(device), stream_(device), slots_{Slot(device), Slot(device)} {}

GpuLane::~GpuLane() {
  cuda::Sentence why{};
  // Whoever fails here has nothing under way any more.
  static_cast<void>(library().synchronize(device_, stream_.get(), &why));
}

void GpuLane::reserve(std::size_t bytes) {
  if (bytes <= slots_.front().memory.bytes()) return;
  cuda::Sentence why{};
  cuda::check(library().synchronize(device_, stream_.get(), &why), why);
  // Rounded up, so that it seldom grows.
  for (Slot& slot : slots_) slot.memory = cuda::HostBytes(std::bit_ceil(bytes));
}

void GpuLane::follow(void* stream) {
  cuda::Sentence why{};
  cuda::check(library().follow(device_, stream_.get(), stream, &why), why);
}

void GpuLane::lead(void* stream) {
  cuda::Sentence why{};
  cuda::check(library().follow(device_, stream, stream_.get(), &why), why);
}

void GpuLane::copy(void* to, const void* from, std::size_t bytes) {
  cuda::Sentence why{};
  cuda::check(library().enqueue_copy(device_, to, from, bytes, stream_.get(), &why), why);
}

}  // namespace coll

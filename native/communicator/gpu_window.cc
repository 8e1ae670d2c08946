// SPDX-License-Identifier: Apache-2.0
#include "communicator/gpu_window.h"

#include <cstdint>
#include <exception>
#include <mutex>
#include <utility>

namespace coll {
namespace {

using cuda::library;

// A window whose owner has left.
struct Leftover {
  cuda::DeviceMemory memory;
  int rank, ranks, device;

  // Whether all others have left it.
  bool is_free() const {
    std::vector<std::uint64_t> left(static_cast<std::size_t>(ranks));
    const cuda::Stream stream(device);
    cuda::Sentence why{};
    cuda::check(library().copy(device, left.data(), memory.get() + WindowShape::left(),
                               left.size() * sizeof(left[0]), stream.get(), &why),
                why);
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer != rank && left[static_cast<std::size_t>(peer)] == 0) return false;
    }
    return true;
  }
};

std::mutex leftovers_mutex;

// Those of this process; they are never destroyed, since at its end the driver takes back all.
std::vector<Leftover>& leftovers() {
  static auto* const all = new std::vector<Leftover>;
  return *all;
}

void sweep() {
  const std::lock_guard lock(leftovers_mutex);
  std::erase_if(leftovers(), [](const Leftover& leftover) { return leftover.is_free(); });
}

}  // namespace

GpuWindow::GpuWindow(int rank, int ranks, int device, const WindowShape& shape)
    : rank_(rank), ranks_(ranks), device_(device) {
  sweep();
  memory_ = cuda::DeviceMemory(device, shape.bytes());
  cuda::Sentence why{};
  cuda::check(library().export_memory(device, memory_.get(), &handle_, &why), why);
}

GpuWindow::~GpuWindow() {
  try {
    {
      const std::lock_guard lock(leftovers_mutex);
      leftovers().push_back({std::move(memory_), rank_, ranks_, device_});
    }
    sweep();
  } catch (const std::exception&) {  // the GPU has failed, or memory: it stays
    return;
  }
}

PeerWindow::PeerWindow(int rank, int device, const cuda::MemoryHandle& handle)
    : rank_(rank), device_(device), handle_(handle) {
  cuda::Sentence why{};
  cuda::check(library().open(device, &handle_, &memory_, &why), why);
}

PeerWindow::PeerWindow(PeerWindow&& other) noexcept
    : rank_(other.rank_),
      device_(other.device_),
      handle_(other.handle_),
      memory_(std::exchange(other.memory_, nullptr)) {}

PeerWindow::~PeerWindow() {
  if (memory_ == nullptr) return;
  constexpr std::uint64_t gone = 1;
  cuda::Sentence why{};
  std::byte* const word =
      get() + WindowShape::left() + static_cast<std::size_t>(rank_) * sizeof(gone);
  // Where that fails the window stays as long as its owner's process.
  static_cast<void>(library().upload(device_, word, &gone, sizeof(gone), &why));
  library().close(device_, &handle_, memory_);
}

}  // namespace coll

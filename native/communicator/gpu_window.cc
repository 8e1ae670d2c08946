// SPDX-License-Identifier: Apache-2.0
#include "communicator/gpu_window.h"

#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "transport/liveness.h"

namespace coll {
namespace {

using cuda::library;

// A window whose owner has left.
struct Leftover {
  cuda::DeviceMemory memory;
  WindowUsers users;
};

std::mutex leftovers_mutex;

// Those of this process; they are never destroyed, since at its end the driver takes back all.
std::vector<Leftover>& leftovers() {
  static auto* const all = new std::vector<Leftover>;
  return *all;
}

}  // namespace

bool WindowUsers::all_have_left() const noexcept {
  if (!memory->is_here()) return false;  // in a forked child nothing can be told
  for (int peer = 0; peer < ranks; ++peer) {
    if (peer == rank) continue;
    const Life life = life_of(segment, peer);
    if (life != Life::closed && life != Life::dead) return false;
  }
  return true;
}

void free_left_windows() noexcept {
  const std::lock_guard lock(leftovers_mutex);
  std::erase_if(leftovers(),
                [](const Leftover& leftover) { return leftover.users.all_have_left(); });
}

GpuWindow::GpuWindow(int device, const WindowShape& shape, WindowUsers users)
    : users_(std::move(users)) {
  free_left_windows();
  memory_ = cuda::DeviceMemory(device, shape.bytes());
  cuda::Sentence why{};
  cuda::check(library().export_memory(device, memory_.get(), &handle_, &why), why);
}

GpuWindow::~GpuWindow() {
  try {
    const std::lock_guard lock(leftovers_mutex);
    leftovers().reserve(leftovers().size() + 1);
    leftovers().push_back({std::move(memory_), std::move(users_)});
  } catch (const std::exception&) {  // without memory for the list it goes at once
    return;
  }
}

PeerWindow::PeerWindow(int device, const cuda::MemoryHandle& handle)
    : device_(device), handle_(handle) {
  cuda::Sentence why{};
  cuda::check(library().open(device, &handle_, &memory_, &why), why);
}

PeerWindow::PeerWindow(PeerWindow&& other) noexcept
    : device_(other.device_),
      handle_(other.handle_),
      memory_(std::exchange(other.memory_, nullptr)) {}

PeerWindow::~PeerWindow() {
  if (memory_ != nullptr) library().close(device_, &handle_, memory_);
}

}  // namespace coll

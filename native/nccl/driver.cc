// SPDX-License-Identifier: Apache-2.0
#include "nccl/driver.h"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "collectives_gpu.h"
#include "nccl/result.h"

namespace coll::nccl {
namespace {

constexpr std::size_t kSentence = 512;  // for a sentence

// As the driver's interface numbers them.
constexpr int kMemoryTypeAttribute = 2, kDeviceMemory = 2;

using PointerAttribute = int (*)(void* data, int attribute, std::uintptr_t pointer);
using ContextDevice = int (*)(int* device);

std::atomic<PointerAttribute> pointer_attribute{nullptr};
std::atomic<ContextDevice> context_device{nullptr};
std::atomic<int> gpus{0};

bool is_on_device(const void* data) noexcept {
  const PointerAttribute ask = pointer_attribute.load(std::memory_order_relaxed);
  if (ask == nullptr) return false;
  unsigned type = 0;
  return ask(&type, kMemoryTypeAttribute, reinterpret_cast<std::uintptr_t>(data)) == 0 &&
         type == kDeviceMemory;
}

}  // namespace

void look_for_driver() noexcept {
  static const bool looked = [] {
    gpus = coll_gpu_count(nullptr, 0);
    void* const library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) return true;
    context_device = reinterpret_cast<ContextDevice>(::dlsym(library, "cuCtxGetDevice"));
    pointer_attribute =
        reinterpret_cast<PointerAttribute>(::dlsym(library, "cuPointerGetAttribute"));
    return true;
  }();
  static_cast<void>(looked);
}

bool has_driver() noexcept {
  return has_gpus() || pointer_attribute.load(std::memory_order_relaxed) != nullptr;
}

bool has_gpus() noexcept { return gpus.load(std::memory_order_relaxed) > 0; }

std::string why_no_gpus() {
  std::array<char, kSentence> why{};
  return coll_gpu_count(why.data(), why.size()) > 0 ? "" : why.data();
}

int gpu_of(const void* data) {
  if (data == nullptr) return -1;
  if (has_gpus()) return coll_gpu_owner(data);
  if (!is_on_device(data)) return -1;
  throw Refusal(ncclInvalidUsage,
                "an array lies in the memory of a GPU, for which there are no kernels here: " +
                    why_no_gpus());
}

int current_device() noexcept {
  const ContextDevice ask = context_device.load(std::memory_order_relaxed);
  int device = -1;
  if (ask != nullptr && ask(&device) == 0) return device;
  return has_gpus() ? 0 : -1;  // with which CUDA begins
}

}  // namespace coll::nccl

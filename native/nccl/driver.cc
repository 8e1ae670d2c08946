// SPDX-License-Identifier: Apache-2.0
#include "nccl/driver.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdint>

#include "nccl/result.h"

namespace coll::nccl {
namespace {

// As the driver's interface numbers them.
constexpr int kMemoryTypeAttribute = 2, kDeviceMemory = 2;

using PointerAttribute = int (*)(void* data, int attribute, std::uintptr_t pointer);
using ContextDevice = int (*)(int* device);

std::atomic<PointerAttribute> pointer_attribute{nullptr};
std::atomic<ContextDevice> context_device{nullptr};

// cudaStreamLegacy and cudaStreamPerThread are small numbers, no addresses.
constexpr std::uintptr_t kLastNamedStream = 2;

}  // namespace

void look_for_driver() noexcept {
  static const bool looked = [] {
    void* const library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) return true;
    context_device = reinterpret_cast<ContextDevice>(::dlsym(library, "cuCtxGetDevice"));
    pointer_attribute =
        reinterpret_cast<PointerAttribute>(::dlsym(library, "cuPointerGetAttribute"));
    return true;
  }();
  static_cast<void>(looked);
}

bool has_driver() noexcept { return pointer_attribute.load(std::memory_order_relaxed) != nullptr; }

bool is_on_device(const void* data) noexcept {
  const PointerAttribute ask = pointer_attribute.load(std::memory_order_relaxed);
  if (ask == nullptr || data == nullptr) return false;
  unsigned type = 0;
  return ask(&type, kMemoryTypeAttribute, reinterpret_cast<std::uintptr_t>(data)) == 0 &&
         type == kDeviceMemory;
}

void expect_host(const void* send, const void* recv, cudaStream_t stream) {
  if (reinterpret_cast<std::uintptr_t>(stream) > kLastNamedStream) {
    throw Refusal(ncclInvalidUsage,
                  has_driver()
                      ? "arrays in the memory of the host go with stream NULL only, in this version"
                      : "there is no CUDA driver, so the stream must be NULL");
  }
  if (!has_driver()) return;
  if (is_on_device(send) || is_on_device(recv)) {
    throw Refusal(ncclInvalidUsage,
                  "an array lies in the memory of a GPU, where this libnccl.so.2 takes arrays of "
                  "the host only, in this version: use NCCL's own library for it, or "
                  "collectives.local()");
  }
}

int current_device() noexcept {
  const ContextDevice ask = context_device.load(std::memory_order_relaxed);
  int device = -1;
  return ask != nullptr && ask(&device) == 0 ? device : -1;
}

}  // namespace coll::nccl

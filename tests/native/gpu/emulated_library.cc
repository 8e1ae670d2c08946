// SPDX-License-Identifier: Apache-2.0
// The library of kernels without a GPU: what native/cuda/library.h promises, of memory of this
// process and threads in the place of blocks. Tests open it by COLLECTIVES_CUDA_LIBRARY. It has
// three devices; streams are nothing, as everything is done when it is enqueued.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "cuda/emulation.h"
#include "cuda/families.h"
#include "cuda/library.h"

namespace coll::cuda {
namespace {

constexpr std::int32_t kDevices = 3;
constexpr std::size_t kAlignment = 256;
constexpr int kThreads = 2;
constexpr int kBlocks = 16;

struct Allocation {
  std::size_t bytes;
  std::int32_t device;
};
std::mutex mutex;
std::map<std::uintptr_t, Allocation> allocations;

std::int32_t refuse(const char* text, Sentence* why) noexcept {
  std::snprintf(why->text, sizeof(why->text), "%s", text);
  return -1;
}

void* zeros(std::size_t bytes) noexcept {
  const std::size_t whole = (bytes + kAlignment) / kAlignment * kAlignment;
  void* memory = std::aligned_alloc(kAlignment, whole);
  if (memory != nullptr) std::memset(memory, 0, whole);
  return memory;
}

template <class Use>
bool use_kernel(std::int32_t dtype_number, std::int32_t op_number, Use&& use) {
  const auto dtype = static_cast<Dtype>(dtype_number);
  const auto op = static_cast<Reduction>(op_number);
  if (!exists(dtype)) return false;
  if (op_number == kMovesOnly) return use_copy(dtype, use);
  return use_float(dtype, op, use) || use_narrow_float(dtype, op, use) ||
         use_integer(dtype, op, use) || use_boolean(dtype, op, use) || use_complex(dtype, op, use);
}

}  // namespace

extern "C" {

std::uint32_t coll_cuda_version() noexcept { return kLibraryVersion; }

std::int32_t coll_cuda_devices(Sentence*) noexcept { return kDevices; }

std::int32_t coll_cuda_device(std::int32_t device, DeviceFacts* facts, Sentence* why) noexcept {
  if (device < 0 || device >= kDevices) return refuse("there is no such device", why);
  *facts = {};
  std::snprintf(facts->name, sizeof(facts->name), "emulated");
  facts->multiprocessors = kBlocks;
  facts->cooperative = 1;
  facts->memory = 1 << 30;
  facts->shared_bytes = 96 << 10;
  return 0;
}

std::int32_t coll_cuda_load(std::int32_t, Sentence*) noexcept { return 0; }

std::int32_t coll_cuda_blocks(std::int32_t, std::int32_t dtype, std::int32_t op,
                              std::size_t) noexcept {
  return use_kernel(dtype, op, []<class Element, class Operation>(std::uint32_t) {}) ? kBlocks : 0;
}

std::int32_t coll_cuda_allocate(std::int32_t device, std::size_t bytes, void** memory,
                                Sentence* why) noexcept {
  *memory = zeros(bytes);
  if (*memory == nullptr) return refuse("taking memory of a GPU: there is none left", why);
  const std::lock_guard lock(mutex);
  allocations[reinterpret_cast<std::uintptr_t>(*memory)] = {bytes, device};
  return 0;
}

void coll_cuda_free(std::int32_t, void* memory) noexcept {
  const std::lock_guard lock(mutex);
  allocations.erase(reinterpret_cast<std::uintptr_t>(memory));
  std::free(memory);
}

std::int32_t coll_cuda_allocate_host(std::size_t bytes, void** memory, Sentence* why) noexcept {
  *memory = zeros(bytes);
  return *memory != nullptr ? 0 : refuse("taking memory that GPUs see: there is none left", why);
}

void coll_cuda_free_host(void* memory) noexcept { std::free(memory); }

std::int32_t coll_cuda_upload(std::int32_t, void* to, const void* from, std::size_t bytes,
                              Sentence*) noexcept {
  std::memcpy(to, from, bytes);
  return 0;
}

std::int32_t coll_cuda_owner(const void* pointer) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(pointer);
  const std::lock_guard lock(mutex);
  auto after = allocations.upper_bound(at);
  if (after == allocations.begin()) return -1;
  const auto& [begin, allocation] = *--after;
  return at - begin < allocation.bytes ? allocation.device : -1;
}

std::int32_t coll_cuda_follow(std::int32_t, void*, void*, Sentence*) noexcept { return 0; }

std::int32_t coll_cuda_launch(std::int32_t, const void* launch, std::int32_t dtype, std::int32_t op,
                              std::size_t shared, void*, Sentence* why) noexcept {
  Launch told = *static_cast<const Launch*>(launch);
  if (told.ranks * told.channels > kBlocks) {
    return refuse("launching a collective: too many blocks to run together", why);
  }
  const auto run = [&]<class Element, class Operation>(std::uint32_t units) {
    told.units = units;
    emulate<Element, Operation>(told, kThreads, shared);
  };
  return use_kernel(dtype, op, run) ? 0 : refuse("launching a collective: no such kernel", why);
}

std::int32_t coll_cuda_synchronize(std::int32_t, void*, Sentence*) noexcept { return 0; }

}  // extern "C"

}  // namespace coll::cuda

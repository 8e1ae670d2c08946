// SPDX-License-Identifier: Apache-2.0
#include "transport/symmetric_heap.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <string>
#include <utility>

#include "base/system_error.h"
#include "transport/memory_limit.h"
#include "transport/system_calls.h"

namespace coll {
namespace {

constexpr std::size_t kLeastWindow = std::size_t{1} << 30;
// As in memory.cc: a signal undoes an unfinished fallocate.
constexpr std::size_t kLargePage = std::size_t{2} << 20, kBackedAtOnce = kLargePage;
// Windows are a power of two apart, and first caches of AMD tell lines of one set apart by a hash
// of few address bits: arrays that begin alike in all windows would take each other's place in
// them, and a sum over them take five times as long. So each window begins this much further in.
constexpr std::size_t kStagger = 17 * kPage;

}  // namespace

SymmetricHeap::SymmetricHeap(Memory::File file, std::size_t offset, std::size_t window,
                             std::size_t windows, std::size_t own)
    : file_(std::move(file)), offset_(offset), window_(window), windows_(windows), own_(own) {
  const std::size_t first = own_ * kStagger;
  if (first < window_) free_[first] = window_ - first;
}

// Nobody uses a block any more: whoever does keeps this heap.
SymmetricHeap::~SymmetricHeap() {
  if (std::byte* base = base_.load()) sys::munmap(base, window_ * windows_);
}

std::size_t SymmetricHeap::usual_window() noexcept {
  return std::bit_ceil(std::max(machine_memory(), kLeastWindow));
}

// Address space only, for all windows at once: what lies there is backed by who owns it.
std::byte* SymmetricHeap::map() noexcept {
  const std::lock_guard lock(mutex_);
  if (std::byte* base = base_.load()) return base;
  void* made = sys::mmap(window_ * windows_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                         file_->get(), static_cast<off_t>(offset_));
  if (made == MAP_FAILED) return nullptr;
  // Where the machine gives large pages of shared memory to who asks: docs/plan.md.
  sys::madvise(made, window_ * windows_, MADV_HUGEPAGE);
  base_.store(static_cast<std::byte*>(made));
  return base_.load();
}

void* SymmetricHeap::allocate(std::size_t bytes) {
  if (base_.load() == nullptr && map() == nullptr) {
    throw system_error("mapping the symmetric heap", errno);
  }
  const std::lock_guard lock(mutex_);
  if (bytes > window_) {
    throw Error(Status::out_of_memory, "the symmetric heap of a process has " +
                                           std::to_string(window_) + " bytes, not " +
                                           std::to_string(bytes));
  }
  const std::size_t size = std::max<std::size_t>((bytes + kPage - 1) / kPage * kPage, kPage);
  // The first that is large enough: what has memory already comes first.
  const auto at = std::ranges::find_if(free_, [&](const auto& f) { return f.second >= size; });
  if (at == free_.end()) {
    throw Error(Status::out_of_memory,
                "the symmetric heap has no block of " + std::to_string(size) + " bytes left");
  }
  const auto [begin, room] = *at;
  back(begin, begin + size);
  free_.erase(at);
  if (room > size) free_[begin + size] = room - size;
  used_[begin] = size;
  return base_.load() + own_ * window_ + begin;
}

void SymmetricHeap::back(std::size_t begin, std::size_t end) {
  begin = std::max(begin, backed_);
  if (begin >= end) return;
  if (end - begin >= kLargePage) {
    end = std::min((end + kLargePage - 1) / kLargePage * kLargePage, window_);
  }
  if (end - begin > available_memory()) {
    throw Error(Status::out_of_memory, "the symmetric heap needs " + std::to_string(end - begin) +
                                           " bytes more, and this machine or control group has " +
                                           std::to_string(available_memory()) +
                                           " left: what arrays left stays with their process");
  }
  const std::size_t start = offset_ + own_ * window_;
  grow_file(start + end);
  // Faults bring large pages where the mapping was advised to have them; fallocate() does not.
  std::byte* from = base_.load() + own_ * window_ + begin;
  if (sys::madvise(from, end - begin, sys::kPopulateWrite) != 0) {
    if (errno != EINVAL) throw system_error("backing the symmetric heap by memory", errno);
    back_by_file(start + begin, start + end);
  }
  backed_ = end;
}

// On kernels that do not populate.
void SymmetricHeap::back_by_file(std::size_t begin, std::size_t end) {
  for (std::size_t at = begin; at < end; at += kBackedAtOnce) {
    const std::size_t piece = std::min(kBackedAtOnce, end - at);
    if (sys::fallocate(file_->get(), static_cast<off_t>(at), static_cast<off_t>(piece)) != 0 &&
        errno != EOPNOTSUPP && errno != ENOSYS) {
      throw system_error("backing the symmetric heap by memory", errno);
    }
  }
}

// Other processes may be growing the file at this moment. It cannot shrink: of two sizes the larger
// stays.
void SymmetricHeap::grow_file(std::size_t bytes) {
  for (int attempt = 0;; ++attempt) {
    struct stat status{};
    if (sys::fstat(file_->get(), &status) == 0 &&
        static_cast<std::size_t>(status.st_size) >= bytes) {
      return;
    }
    if (sys::ftruncate(file_->get(), static_cast<off_t>(bytes)) == 0) return;
    if (errno != EPERM || attempt > 0) throw system_error("growing the symmetric heap", errno);
  }
}

void SymmetricHeap::release(void* block) noexcept {
  const std::lock_guard lock(mutex_);
  const std::byte* window = base_.load() + own_ * window_;
  const auto begin = static_cast<std::size_t>(static_cast<std::byte*>(block) - window);
  const auto used = used_.find(begin);
  if (used == used_.end()) return;
  std::size_t first = begin, bytes = used->second;
  used_.erase(used);
  if (retired_.load()) return;
  const auto next = free_.lower_bound(begin);
  if (next != free_.end() && next->first == first + bytes) {
    bytes += next->second;
    free_.erase(next);
  }
  const auto after = free_.lower_bound(begin);
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == first) {
      first = before->first;
      bytes += before->second;
      free_.erase(before);
    }
  }
  free_[first] = bytes;
}

std::uint64_t SymmetricHeap::name_of(const void* data, std::size_t bytes) const noexcept {
  const std::byte* base = base_.load(std::memory_order_acquire);
  const auto at = reinterpret_cast<std::uintptr_t>(data) - reinterpret_cast<std::uintptr_t>(base);
  const std::size_t all = window_ * windows_;
  if (base == nullptr || at >= all || bytes > all - at) return 0;
  return at + 1;
}

std::byte* SymmetricHeap::reach(std::uint64_t name) noexcept {
  std::byte* base = base_.load(std::memory_order_acquire);
  if (base == nullptr) base = map();
  return base == nullptr || name == 0 || name > window_ * windows_ ? nullptr : base + (name - 1);
}

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
#include "base/memory_pool.h"

#include <array>
#include <bit>
#include <mutex>
#include <new>
#include <utility>

namespace coll {
namespace {

struct Kept {
  std::byte* memory = nullptr;
  std::size_t room = 0;
};

// Who finds it locked does without: nobody waits here, nor the child of a fork that another thread
// of its parent has left it locked to.
class Pool {
 public:
  Kept take(std::size_t room) noexcept {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return {};
    Kept* best = nullptr;
    for (Kept& kept : kept_) {
      if (kept.room < room || kept.room > 2 * room) continue;
      if (best == nullptr || kept.room < best->room) best = &kept;
    }
    if (best == nullptr) return {};
    bytes_ -= best->room;
    return std::exchange(*best, {});
  }

  // The oldest ones go for it. False: it is not kept.
  bool keep(Kept given) noexcept {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return false;
    bytes_ += given.room - kept_[next_].room;
    delete[] std::exchange(kept_[next_], given).memory;
    next_ = (next_ + 1) % kept_.size();
    for (std::size_t i = next_; bytes_ > kMostKept; i = (i + 1) % kept_.size()) drop(kept_[i]);
    return true;
  }

  // Whether there was any.
  bool drop_all() noexcept {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || bytes_ == 0) return false;
    for (Kept& kept : kept_) drop(kept);
    return true;
  }

  std::size_t bytes() noexcept {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    return lock ? bytes_ : 0;
  }

 private:
  void drop(Kept& kept) noexcept {
    bytes_ -= kept.room;
    delete[] std::exchange(kept, {}).memory;
  }

  std::mutex mutex_;
  std::array<Kept, 32> kept_ = {};
  std::size_t next_ = 0, bytes_ = 0;
};

// Not destroyed: what programs hold of results may be given back after main() has returned.
Pool& pool() noexcept {
  alignas(Pool) static std::byte memory[sizeof(Pool)];
  static Pool* const pool = new (memory) Pool;
  return *pool;
}

// A few sizes between two powers of two, so that lengths that differ a little share memory.
constexpr std::size_t rounded(std::size_t bytes) noexcept {
  const std::size_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) & ~(step - 1);
}

}  // namespace

void GiveBack::operator()(std::byte* memory) const noexcept {
  if (room == 0 || !pool().keep({memory, room})) delete[] memory;
}

PooledBytes pooled(std::size_t bytes) noexcept {
  if (bytes < kLeastPooled || bytes > kMostKept) {
    return {new (std::nothrow) std::byte[bytes], GiveBack{}};
  }
  const std::size_t room = rounded(bytes);
  if (const Kept found = pool().take(room); found.memory != nullptr) {
    return {found.memory, GiveBack{found.room}};
  }
  std::byte* memory = new (std::nothrow) std::byte[room];
  if (memory == nullptr && pool().drop_all()) memory = new (std::nothrow) std::byte[room];
  return {memory, GiveBack{room}};
}

std::shared_ptr<std::byte[]> pooled_or_throw(std::size_t bytes) {
  PooledBytes memory = pooled(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

std::size_t kept_bytes() noexcept { return pool().bytes(); }

}  // namespace coll

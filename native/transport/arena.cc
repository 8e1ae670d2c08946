// SPDX-License-Identifier: Apache-2.0
#include "transport/arena.h"

#include "base/error.h"

namespace coll {

std::shared_ptr<Memory> HeapArena::make(std::uint64_t group, std::size_t bytes, std::size_t) {
  auto memory = std::make_shared<Memory>(Memory::allocate(bytes));
  const std::lock_guard lock(mutex_);
  std::erase_if(groups_, [](const auto& entry) { return entry.second.expired(); });
  groups_[group] = memory;
  return memory;
}

std::shared_ptr<Memory> HeapArena::find(std::uint64_t group, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = groups_.find(group);
  auto memory = found != groups_.end() ? found->second.lock() : nullptr;
  if (!memory || memory->size() != bytes) {
    throw Error(Status::peer_lost, "the rank that made this group has given it up");
  }
  return memory;
}

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Where the groups of a job get their memory: the first one, and those that its members form among
// themselves later, without meeting again. What one member makes in the name of a group the others
// find under that name, and it is given back when the last of them has let go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "transport/memory.h"
#include "transport/symmetric_heap.h"

namespace coll {

class Arena {
 public:
  Arena() = default;
  virtual ~Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Zeroed memory for the new group of this name, a random number: random_group(). Of what is
  // shared between processes only the first `reserved` bytes are backed by memory.
  virtual std::shared_ptr<Memory> make(std::uint64_t group, std::size_t bytes,
                                       std::size_t reserved) = 0;
  // What another member has made. Throws Error where nobody holds it any more.
  virtual std::shared_ptr<Memory> find(std::uint64_t group, std::size_t bytes) = 0;
  // Memory for the arrays of this process's users, within reach of all members. Null where all
  // memory is: of threads.
  virtual std::shared_ptr<SymmetricHeap> heap() = 0;
};

// Of ranks that are threads of this process.
class HeapArena final : public Arena {
 public:
  std::shared_ptr<Memory> make(std::uint64_t group, std::size_t bytes,
                               std::size_t reserved) override;
  std::shared_ptr<Memory> find(std::uint64_t group, std::size_t bytes) override;
  std::shared_ptr<SymmetricHeap> heap() override { return nullptr; }

 private:
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::weak_ptr<Memory>> groups_;
};

}  // namespace coll

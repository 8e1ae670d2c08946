// SPDX-License-Identifier: Apache-2.0
// Where the bytes of a segment come from: an allocation for ranks that are threads, a memfd for
// ranks that are processes. A memfd has no name, so nothing can collide or be left behind, and the
// size of /dev/shm does not bind it.
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "transport/descriptor.h"

namespace coll {

// The granularity of reserve() and of the rings in a segment. The page of every CPU is a multiple.
inline constexpr std::size_t kPage = 4096;
inline constexpr std::size_t kEverything = static_cast<std::size_t>(-1);

class Memory {
 public:
  Memory() = default;
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  ~Memory() { release(); }

  // Zeroed, page-aligned memory of this process. Several communicators share it by a shared_ptr.
  static Memory allocate(std::size_t bytes);
  // A sealed memfd, mapped. Its first `reserved` bytes are backed by memory when this returns; the
  // rest must be reserve()d before it is touched, or a machine short of memory raises SIGBUS.
  static Memory shared(std::size_t bytes, std::size_t reserved = kEverything);
  // Maps what another process made by shared(): refuses memory that a peer could still shrink.
  static Memory map(Descriptor fd);

  // Backs this range by memory, near the calling thread's CPU. Throws Error where there is none.
  void reserve(std::size_t offset, std::size_t bytes);

  void* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  // Of the memfd; -1 without one.
  int fd() const noexcept { return fd_.get(); }
  // The mapping lives on without it.
  void close_fd() noexcept { fd_.reset(); }

 private:
  void map_fd();
  void release() noexcept;

  void* data_ = nullptr;
  std::size_t size_ = 0;
  pid_t owner_ = 0;
  Descriptor fd_;
};

}  // namespace coll

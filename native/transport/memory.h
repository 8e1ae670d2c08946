// SPDX-License-Identifier: Apache-2.0
// Where the bytes of a segment come from: an allocation for ranks that are threads, a memfd for
// ranks that are processes. A memfd has no name, so nothing can collide or be left behind, and the
// size of /dev/shm does not bind it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>

#include "transport/descriptor.h"

namespace coll {

// The granularity of ranges of a file, of reserve() and of the rings in a segment: a multiple of
// the page of every kernel for this kind of CPU. Of 64-bit Arm there are kernels with 4, 16, 64
// KiB.
#if defined(__aarch64__)
inline constexpr std::size_t kPage = 65536;
#else
inline constexpr std::size_t kPage = 4096;
#endif
inline constexpr std::size_t kEverything = static_cast<std::size_t>(-1);

class Memory {
 public:
  // A memfd. It can grow, never shrink. No forked child keeps it (unforked.h).
  using File = std::shared_ptr<Descriptor>;

  Memory() = default;
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  ~Memory() { release(); }

  // Zeroed, page-aligned memory of this process. Several communicators share it by a shared_ptr.
  static Memory allocate(std::size_t bytes);
  // A new memfd, backed by memory and mapped.
  static Memory shared(std::size_t bytes);
  // Maps what another process made by shared(), or its first bytes: refuses memory that a peer
  // could still shrink.
  static Memory map(Descriptor fd, std::size_t most = kEverything);
  // Maps a range of a file that reaches so far. What of it is not reserve()d must not be touched:
  // a machine short of memory raises SIGBUS.
  static Memory range(File file, std::size_t offset, std::size_t bytes);

  // Backs these bytes by memory, near the calling thread's CPU. Throws Error where there is none.
  void reserve(std::size_t offset, std::size_t bytes);

  void* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  // False in a forked child, where nothing is mapped.
  bool is_here() const noexcept;
  // Of an allocation: none.
  const File& file() const noexcept { return file_; }
  int fd() const noexcept;  // -1: none

 private:
  void map_file();
  void release() noexcept;

  void* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t offset_ = 0;  // in the file
  pid_t owner_ = 0;
  File file_;
};

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// Memory of the other ranks' processes, wherever it lies, read by the kernel without a copy on the
// way. It may not be allowed (containers and Yama forbid it), and a process may have another number
// where this one looks: so each rank keeps a number of chance in its memory, and who finds it there
// has the right process, and may read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>

#include "transport/segment.h"

namespace coll {

class PeerMemory {
 public:
  // Shows the other ranks this one's mark.
  PeerMemory(Segment segment, int rank);

  // Whether this process may read the memory of all other ranks', at this moment.
  bool reads_all() const noexcept;
  // Whether the others could read this memory of this process, as far as its ends tell: the kernel
  // reads none that belongs to a device.
  using Bytes = std::span<const std::byte>;
  bool can_be_read(std::initializer_list<Bytes> buffers) const noexcept;
  // Whether all bytes were there.
  bool read(int rank, void* to, std::uint64_t from, std::size_t bytes) const noexcept;

  // What readers know memory of a rank by, beside the names of its symmetric heap, which are less.
  static std::uint64_t name_of(const void* data) noexcept {
    return kPrivate | reinterpret_cast<std::uintptr_t>(data);
  }
  static constexpr bool is_private(std::uint64_t name) noexcept { return (name & kPrivate) != 0; }
  static constexpr std::uint64_t address_of(std::uint64_t name) noexcept {
    return name & ~kPrivate;
  }

 private:
  // No address of a program has it, on any machine that this library knows.
  static constexpr std::uint64_t kPrivate = std::uint64_t{1} << 63;

  Segment segment_;
  int rank_;
  std::unique_ptr<std::uint64_t> mark_;
};

}  // namespace coll

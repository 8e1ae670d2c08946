// SPDX-License-Identifier: Apache-2.0
// Bytes from one writer to one reader through memory that both have mapped: a ring with two
// counters, each written by one side only (L. Lamport, "Proving the correctness of multiprocess
// programs", 1977). Neither waits; a side that holds a broken counter of its peer reads garbage,
// but never leaves the ring.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace coll {

// In shared memory; all zero at first.
struct ByteRingCounters {
  alignas(64) std::atomic<std::uint64_t> written;
  alignas(64) std::atomic<std::uint64_t> taken;
};

class ByteRing {
 public:
  // A power of two, so large that a tile or two fit, so small that it stays in the cache.
  static constexpr std::size_t kBytes = std::size_t{256} << 10;

  ByteRing(ByteRingCounters* counters, std::byte* bytes) noexcept
      : counters_(counters), bytes_(bytes) {}

  // The writer's: copies as much of the parts as there is room for. Returns the bytes.
  std::size_t write(const iovec* parts, std::size_t count) noexcept;
  std::size_t room() const noexcept { return kBytes - waiting(); }

  // The reader's: fills the parts as far as bytes are there. Returns the bytes.
  std::size_t read(const iovec* parts, std::size_t count) noexcept;
  // Bytes that were written and not taken.
  std::size_t waiting() const noexcept;

 private:
  ByteRingCounters* counters_;
  std::byte* bytes_;
};

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// A pool of large memory, which calls take and give back again and again. What comes from the
// kernel is a fault and a cleared page for each 4 KiB: of a sparse allreduce of half a MiB that was
// two fifths of its time, as the C library gives the end of its heap back each time.
#pragma once

#include <cstddef>
#include <memory>

namespace coll {

// Gives it to the next who takes about as much, or back.
struct GiveBack {
  std::size_t room = 0;  // bytes that are there; 0: memory that is nobody else's later
  void operator()(std::byte* memory) const noexcept;
};

using PooledBytes = std::unique_ptr<std::byte[], GiveBack>;

constexpr std::size_t kLeastPooled = std::size_t{1} << 16;  // bytes; less comes from the heap
constexpr std::size_t kMostKept = std::size_t{1} << 26;     // bytes that a process keeps

// Memory for so many bytes, in which anything may stand; null: there is none. Any thread may take
// it, and any other give it back.
PooledBytes pooled(std::size_t bytes) noexcept;

// The same for who never does without: throws bad_alloc.
std::shared_ptr<std::byte[]> pooled_or_throw(std::size_t bytes);

// How much is kept for the next.
std::size_t kept_bytes() noexcept;

}  // namespace coll

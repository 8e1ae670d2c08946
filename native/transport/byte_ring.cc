// SPDX-License-Identifier: Apache-2.0
#include "transport/byte_ring.h"

#include <algorithm>
#include <cstring>

namespace coll {
namespace {

// Both sides publish and look in one total order, because a peer may be about to sleep
// (local_pipe.h): it says so and looks at the counters, we move a counter and look whether it does.
constexpr auto kTotal = std::memory_order_seq_cst;

// The longest run of at most `n` bytes from position `at` that does not pass the ring's end.
std::size_t run(std::uint64_t at, std::size_t n) noexcept {
  return std::min<std::size_t>(n, ByteRing::kBytes - (at & (ByteRing::kBytes - 1)));
}

}  // namespace

std::size_t ByteRing::waiting() const noexcept {
  const std::uint64_t taken = counters_->taken.load(kTotal);
  return std::min<std::uint64_t>(counters_->written.load(kTotal) - taken, kBytes);
}

std::size_t ByteRing::write(const iovec* parts, std::size_t count) noexcept {
  const std::size_t room = kBytes - waiting();
  std::uint64_t at = counters_->written.load(std::memory_order_relaxed);
  std::size_t left = room;
  for (std::size_t i = 0; i < count && left > 0; ++i) {
    const auto* from = static_cast<const std::byte*>(parts[i].iov_base);
    std::size_t rest = std::min(parts[i].iov_len, left);
    left -= rest;
    while (rest > 0) {
      const std::size_t n = run(at, rest);
      std::memcpy(bytes_ + (at & (kBytes - 1)), from, n);
      from += n;
      at += n;
      rest -= n;
    }
  }
  if (left != room) counters_->written.store(at, kTotal);
  return room - left;
}

std::size_t ByteRing::read(const iovec* parts, std::size_t count) noexcept {
  const std::size_t there = waiting();
  std::uint64_t at = counters_->taken.load(std::memory_order_relaxed);
  std::size_t left = there;
  for (std::size_t i = 0; i < count && left > 0; ++i) {
    auto* to = static_cast<std::byte*>(parts[i].iov_base);
    std::size_t rest = std::min(parts[i].iov_len, left);
    left -= rest;
    while (rest > 0) {
      const std::size_t n = run(at, rest);
      std::memcpy(to, bytes_ + (at & (kBytes - 1)), n);
      to += n;
      at += n;
      rest -= n;
    }
  }
  if (left != there) counters_->taken.store(at, kTotal);
  return there - left;
}

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
#include "transport/peer_memory.h"

#include <sys/uio.h>

#include <array>

#include "transport/system_calls.h"

namespace coll {
namespace {

constexpr std::size_t kMostBuffers = 2;  // of one call: its input and its output

// Of nothing that anybody looks for: without it none can be sure of this process.
std::uint64_t number_of_chance() noexcept {
  std::uint64_t number = 0;
  const ssize_t got = sys::getrandom(&number, sizeof number);
  return got == static_cast<ssize_t>(sizeof number) ? number : 0;
}

}  // namespace

PeerMemory::PeerMemory(Segment segment, int rank)
    : segment_(segment), rank_(rank), mark_(std::make_unique<std::uint64_t>(number_of_chance())) {
  WatchLine& own = segment_.rank(rank_).watch;
  own.mark_at.store(reinterpret_cast<std::uintptr_t>(mark_.get()), std::memory_order_relaxed);
  own.mark.store(*mark_, std::memory_order_release);
}

bool PeerMemory::reads_all() const noexcept {
  for (int r = 0; r < static_cast<int>(segment_.shape().ranks); ++r) {
    if (r == rank_) continue;
    const WatchLine& theirs = segment_.rank(r).watch;
    const std::uint64_t mark = theirs.mark.load(std::memory_order_acquire);
    const std::uint64_t at = theirs.mark_at.load(std::memory_order_relaxed);
    std::uint64_t found = 0;
    if (mark == 0 || !read(r, &found, at, sizeof found) || found != mark) return false;
  }
  return true;
}

// All ends by one system call, which takes longer than to read them.
bool PeerMemory::can_be_read(std::initializer_list<Bytes> buffers) const noexcept {
  std::array<iovec, kMostBuffers * 2> ends{};
  std::array<std::byte, kMostBuffers * 2> here{};
  std::size_t count = 0;
  for (const Bytes buffer : buffers) {
    if (buffer.empty()) continue;
    for (const std::byte* end : {&buffer.front(), &buffer.back()}) {
      ends.at(count++) = {const_cast<std::byte*>(end), 1};
    }
  }
  if (count == 0) return true;
  const pid_t pid = segment_.rank(rank_).life.pid.load(std::memory_order_relaxed);
  const iovec local = {here.data(), count};
  const ssize_t got = sys::process_vm_readv(pid, &local, 1, ends.data(), count, 0);
  return got == static_cast<ssize_t>(count);
}

bool PeerMemory::read(int rank, void* to, std::uint64_t from, std::size_t bytes) const noexcept {
  const pid_t pid = segment_.rank(rank).life.pid.load(std::memory_order_relaxed);
  for (std::size_t done = 0; done < bytes;) {
    const iovec local = {static_cast<std::byte*>(to) + done, bytes - done};
    const iovec remote = {reinterpret_cast<void*>(from + done), bytes - done};
    const ssize_t got = sys::process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// The test seam of system_calls.h: makes a chosen system call of this process fail.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace coll {

// Every system call that goes through the table. `any` counts them all.
enum class SystemCall : std::uint8_t {
  memfd_create,
  ftruncate,
  fallocate,
  fcntl,
  fstat,
  mmap,
  munmap,
  madvise,
  socket,
  bind,
  listen,
  accept4,
  connect,
  sendmsg,
  recvmsg,
  poll,
  getsockopt,
  setsockopt,
  getsockname,
  getpeername,
  shutdown,
  getifaddrs,
  getrandom,
  open,
  read,
  close,
  opendir,
  kill,
  futex_wait,
  futex_wake,
  membarrier,
  get_robust_list,
  process_vm_readv,
  any
};

struct CallTraits {
  std::string_view name;
  bool interruptible;  // a signal can end it with EINTR
  bool retried;        // where that happens, the table calls again
};

const CallTraits& traits_of(SystemCall call) noexcept;

namespace faults {

struct Fault {
  SystemCall call = SystemCall::any;
  std::uint64_t nth = 1;  // 1: the first from now on
  int error = 0;
  bool always = false;  // all later ones as well
};

// One plan of failures at a time, for the whole process. These three are for quiet moments: no
// other thread may be inside a system call of the table.
void arm(const Fault& fault);
// Ends one in four interruptible calls with EINTR, chosen by `seed`.
void interrupt_at_random(std::uint64_t seed);
// What a busy network does: that, and of sendmsg and recvmsg one in four would block (EAGAIN), and
// half of the others move only a part of the bytes.
void disturb_at_random(std::uint64_t seed);
void clear() noexcept;

// How many failures have been made since the last arm() or ..._at_random().
std::uint64_t fired() noexcept;

// Arms "<call>:<n>:<errno name>[:always]", for instance "mmap:2:ENOMEM" or "any:7:EIO:always".
// Throws Error on anything else.
void arm_from(std::string_view text);

// The hot side: 0, or the errno with which this call is to fail.
extern std::atomic<bool> armed;
int planned(SystemCall call) noexcept;
inline int next(SystemCall call) noexcept {
  return armed.load(std::memory_order_acquire) ? planned(call) : 0;
}

// How many bytes the next sendmsg or recvmsg may move.
inline constexpr std::size_t kAll = SIZE_MAX;
std::size_t planned_bytes() noexcept;
inline std::size_t most_bytes() noexcept {
  return armed.load(std::memory_order_acquire) ? planned_bytes() : kAll;
}

}  // namespace faults
}  // namespace coll

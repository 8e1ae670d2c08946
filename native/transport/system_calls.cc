// SPDX-License-Identifier: Apache-2.0
#include "transport/system_calls.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "transport/faults.h"

namespace coll {
namespace {

// Makes the call unless a test wants it to fail, and again where a signal broke it off.
template <class Real>
auto guarded(SystemCall which, Real real) noexcept -> decltype(real()) {
  using Result = decltype(real());
  for (;;) {
    Result result = static_cast<Result>(-1);
    if (const int error = faults::next(which); error != 0) [[unlikely]] {
      errno = error;
    } else {
      result = real();
    }
    const bool interrupted = result == static_cast<Result>(-1) && errno == EINTR;
    if (!interrupted || !traits_of(which).retried) return result;
  }
}

// Not FUTEX_PRIVATE_FLAG: the waiter and the waker may be different processes.
long futex(const void* address, int operation, std::uint32_t value,
           const timespec* timeout) noexcept {
  return ::syscall(SYS_futex, address, operation, value, timeout, nullptr, 0);
}

// The first `most` bytes of a message without control data: what a test lets through.
struct Shortened {
  Shortened(const msghdr& whole, std::size_t most) noexcept : message(whole) {
    message.msg_iov = parts.data();
    message.msg_iovlen = 0;
    for (std::size_t i = 0; i < whole.msg_iovlen && i < parts.size() && most > 0; ++i) {
      parts[i] = whole.msg_iov[i];
      parts[i].iov_len = std::min(parts[i].iov_len, most);
      most -= parts[i].iov_len;
      ++message.msg_iovlen;
    }
  }
  Shortened(const Shortened&) = delete;
  Shortened& operator=(const Shortened&) = delete;

  std::array<iovec, 8> parts{};
  msghdr message;
};

}  // namespace

bool futex_wait(const void* address, std::uint32_t expected, int microseconds) noexcept {
  if (microseconds <= 0) return false;
  timespec timeout{};
  timeout.tv_sec = microseconds / 1'000'000;
  timeout.tv_nsec = static_cast<long>(microseconds % 1'000'000) * 1000;
  const long result = guarded(SystemCall::futex_wait,
                              [&] { return futex(address, FUTEX_WAIT, expected, &timeout); });
  return result == -1 && errno == EINTR;
}

void futex_wake_all(const void* address) noexcept {
  constexpr std::uint32_t kAll = 0x7FFFFFFF;
  guarded(SystemCall::futex_wake, [&] { return futex(address, FUTEX_WAKE, kAll, nullptr); });
}

bool all_cores_fence_register() noexcept {
  return guarded(SystemCall::membarrier, [] {
           return ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
         }) == 0;
}

bool all_cores_fence() noexcept {
  return guarded(SystemCall::membarrier, [] {
           return ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
         }) == 0;
}

bool robust_lists_are_kept() noexcept {
  return guarded(SystemCall::get_robust_list, [] {
           void* head = nullptr;
           std::size_t size = 0;
           return ::syscall(SYS_get_robust_list, 0, &head, &size);
         }) == 0;
}

namespace sys {

int memfd_create(const char* name, unsigned flags) noexcept {
  return guarded(SystemCall::memfd_create, [&] { return ::memfd_create(name, flags); });
}

int ftruncate(int fd, off_t size) noexcept {
  return guarded(SystemCall::ftruncate, [&] { return ::ftruncate(fd, size); });
}

int fallocate(int fd, off_t offset, off_t size) noexcept {
  return guarded(SystemCall::fallocate, [&] { return ::fallocate(fd, 0, offset, size); });
}

int punch_hole(int fd, off_t offset, off_t size) noexcept {
  return guarded(SystemCall::fallocate, [&] {
    return ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, size);
  });
}

int add_seals(int fd, int seals) noexcept {
  return guarded(SystemCall::fcntl, [&] { return ::fcntl(fd, F_ADD_SEALS, seals); });
}

int get_seals(int fd) noexcept {
  return guarded(SystemCall::fcntl, [&] { return ::fcntl(fd, F_GET_SEALS); });
}

int fstat(int fd, struct stat* status) noexcept {
  return guarded(SystemCall::fstat, [&] { return ::fstat(fd, status); });
}

void* mmap(std::size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  const std::intptr_t address = guarded(SystemCall::mmap, [&] {
    return reinterpret_cast<std::intptr_t>(::mmap(nullptr, size, protection, flags, fd, offset));
  });
  return reinterpret_cast<void*>(address);
}

int munmap(void* address, std::size_t size) noexcept {
  return guarded(SystemCall::munmap, [&] { return ::munmap(address, size); });
}

int madvise(void* address, std::size_t size, int advice) noexcept {
  return guarded(SystemCall::madvise, [&] { return ::madvise(address, size, advice); });
}

int socket(int domain, int type, int protocol) noexcept {
  return guarded(SystemCall::socket, [&] { return ::socket(domain, type, protocol); });
}

int bind(int fd, const sockaddr* address, socklen_t size) noexcept {
  return guarded(SystemCall::bind, [&] { return ::bind(fd, address, size); });
}

int listen(int fd, int backlog) noexcept {
  return guarded(SystemCall::listen, [&] { return ::listen(fd, backlog); });
}

int accept4(int fd, int flags) noexcept {
  return guarded(SystemCall::accept4, [&] { return ::accept4(fd, nullptr, nullptr, flags); });
}

int connect(int fd, const sockaddr* address, socklen_t size) noexcept {
  return guarded(SystemCall::connect, [&] { return ::connect(fd, address, size); });
}

ssize_t sendmsg(int fd, const msghdr* message, int flags) noexcept {
  const std::size_t most = faults::most_bytes();
  if (most != faults::kAll) [[unlikely]] {
    const Shortened part(*message, most);
    return guarded(SystemCall::sendmsg, [&] { return ::sendmsg(fd, &part.message, flags); });
  }
  return guarded(SystemCall::sendmsg, [&] { return ::sendmsg(fd, message, flags); });
}

ssize_t recvmsg(int fd, msghdr* message, int flags) noexcept {
  const std::size_t most = faults::most_bytes();
  if (most != faults::kAll) [[unlikely]] {
    Shortened part(*message, most);
    return guarded(SystemCall::recvmsg, [&] { return ::recvmsg(fd, &part.message, flags); });
  }
  return guarded(SystemCall::recvmsg, [&] { return ::recvmsg(fd, message, flags); });
}

int getsockopt(int fd, int level, int name, void* value, socklen_t* size) noexcept {
  return guarded(SystemCall::getsockopt,
                 [&] { return ::getsockopt(fd, level, name, value, size); });
}

int setsockopt(int fd, int level, int name, const void* value, socklen_t size) noexcept {
  return guarded(SystemCall::setsockopt,
                 [&] { return ::setsockopt(fd, level, name, value, size); });
}

int getsockname(int fd, sockaddr* address, socklen_t* size) noexcept {
  return guarded(SystemCall::getsockname, [&] { return ::getsockname(fd, address, size); });
}

int getpeername(int fd, sockaddr* address, socklen_t* size) noexcept {
  return guarded(SystemCall::getpeername, [&] { return ::getpeername(fd, address, size); });
}

int shutdown(int fd, int how) noexcept {
  return guarded(SystemCall::shutdown, [&] { return ::shutdown(fd, how); });
}

int getifaddrs(ifaddrs** list) noexcept {
  return guarded(SystemCall::getifaddrs, [&] { return ::getifaddrs(list); });
}

int poll(pollfd* fds, nfds_t count, int milliseconds) noexcept {
  return guarded(SystemCall::poll, [&] { return ::poll(fds, count, milliseconds); });
}

ssize_t getrandom(void* buffer, std::size_t size) noexcept {
  return guarded(SystemCall::getrandom, [&] { return ::getrandom(buffer, size, 0); });
}

int open(const char* path, int flags) noexcept {
  return guarded(SystemCall::open, [&] { return ::open(path, flags); });
}

ssize_t read(int fd, void* buffer, std::size_t size) noexcept {
  return guarded(SystemCall::read, [&] { return ::read(fd, buffer, size); });
}

int close(int fd) noexcept {
  // A close() that reports an error has closed nevertheless, so an injected one must as well.
  const int result = ::close(fd);
  return guarded(SystemCall::close, [result] { return result; });
}

DIR* opendir(const char* path) noexcept {
  const int error = faults::next(SystemCall::opendir);
  if (error == 0) return ::opendir(path);
  errno = error;
  return nullptr;
}

int kill(pid_t pid, int signal) noexcept {
  return guarded(SystemCall::kill, [&] { return ::kill(pid, signal); });
}

ssize_t process_vm_readv(pid_t pid, const iovec* local, unsigned long local_count,
                         const iovec* remote, unsigned long remote_count,
                         unsigned long flags) noexcept {
  return guarded(SystemCall::process_vm_readv, [&] {
    return ::process_vm_readv(pid, local, local_count, remote, remote_count, flags);
  });
}

void yield() noexcept { ::sched_yield(); }

}  // namespace sys
}  // namespace coll

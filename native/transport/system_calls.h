// SPDX-License-Identifier: Apache-2.0
// The one door to the kernel for transport, bootstrap and the engine's waiting. Each function has
// the arguments and the result of its namesake (-1 and errno on failure), with three differences:
// EINTR is retried here where retrying is right (faults.h says where), it never throws, and a test
// can make any of them fail (faults.h). The cost of that seam is one predictable branch.
#pragma once

#include <dirent.h>
#include <ifaddrs.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

namespace coll {

// Sleeps while *address == expected, at most `microseconds`. Works between processes. Returns
// whether a signal ended it; may return early for no reason.
bool futex_wait(const void* address, std::uint32_t expected, int microseconds) noexcept;
void futex_wake_all(const void* address) noexcept;

// A full memory fence on every core that runs a thread of a process that has registered, paid by
// the caller alone: so whoever publishes a word needs no fence, only who goes to sleep on it. Both
// return false where the kernel has no such call.
bool all_cores_fence_register() noexcept;
bool all_cores_fence() noexcept;

// Whether the kernel marks the robust mutexes of a thread that ends. Emulators of processes (qemu)
// and some sandboxes do not.
bool robust_lists_are_kept() noexcept;

namespace sys {

int memfd_create(const char* name, unsigned flags) noexcept;
int ftruncate(int fd, off_t size) noexcept;
int fallocate(int fd, off_t offset, off_t size) noexcept;
// fallocate() that gives memory back: the bytes read as zeros from then on.
int punch_hole(int fd, off_t offset, off_t size) noexcept;
int add_seals(int fd, int seals) noexcept;
int get_seals(int fd) noexcept;
int fstat(int fd, struct stat* status) noexcept;
void* mmap(std::size_t size, int protection, int flags, int fd, off_t offset = 0) noexcept;
int munmap(void* address, std::size_t size) noexcept;
int madvise(void* address, std::size_t size, int advice) noexcept;
inline constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, Linux 5.14

int socket(int domain, int type, int protocol) noexcept;
int bind(int fd, const sockaddr* address, socklen_t size) noexcept;
int listen(int fd, int backlog) noexcept;
int accept4(int fd, int flags) noexcept;
int connect(int fd, const sockaddr* address, socklen_t size) noexcept;
ssize_t sendmsg(int fd, const msghdr* message, int flags) noexcept;
ssize_t recvmsg(int fd, msghdr* message, int flags) noexcept;
int getsockopt(int fd, int level, int name, void* value, socklen_t* size) noexcept;
int setsockopt(int fd, int level, int name, const void* value, socklen_t size) noexcept;
int getsockname(int fd, sockaddr* address, socklen_t* size) noexcept;
int getpeername(int fd, sockaddr* address, socklen_t* size) noexcept;
int shutdown(int fd, int how) noexcept;
// The addresses of all interfaces, to be given back with ::freeifaddrs().
int getifaddrs(ifaddrs** list) noexcept;
int poll(pollfd* fds, nfds_t count, int milliseconds) noexcept;

ssize_t getrandom(void* buffer, std::size_t size) noexcept;
int open(const char* path, int flags) noexcept;
ssize_t read(int fd, void* buffer, std::size_t size) noexcept;
// The descriptor is closed whatever is returned.
int close(int fd) noexcept;
DIR* opendir(const char* path) noexcept;
int kill(pid_t pid, int signal) noexcept;
ssize_t process_vm_readv(pid_t pid, const iovec* local, unsigned long local_count,
                         const iovec* remote, unsigned long remote_count,
                         unsigned long flags) noexcept;
void yield() noexcept;

}  // namespace sys
}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/channel.h"

#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/system_error.h"

namespace coll {
namespace {

constexpr int kSlice = 50;  // ms

struct Address {
  sockaddr_un data{};
  socklen_t size = 0;

  explicit Address(const std::string& name) noexcept {
    data.sun_family = AF_UNIX;
    // A leading NUL makes the name abstract; its length ends it.
    const std::size_t n = std::min(name.size(), sizeof data.sun_path - 1);
    std::memcpy(data.sun_path + 1, name.data(), n);
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + n);
  }
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&data); }
};

Opened failure(int error) { return {Descriptor(), error}; }

Opened new_socket() {
  const int fd = sys::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) throw system_error("opening a local socket", errno);
  return {Descriptor(fd), 0};
}

// Takes the descriptors of a message: the first into `passed`, any others are closed.
void take_descriptors(msghdr& message, Descriptor* passed) noexcept {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
      Descriptor taken(fd);
      if (!*passed) *passed = std::move(taken);
    }
  }
}

}  // namespace

Opened listen_at(const std::string& name, int backlog) {
  Opened opened = new_socket();
  const Address address(name);
  if (sys::bind(opened.fd.get(), address.get(), address.size) != 0) return failure(errno);
  if (sys::listen(opened.fd.get(), backlog) != 0) return failure(errno);
  return opened;
}

Opened connect_to(const std::string& name) {
  Opened opened = new_socket();
  const Address address(name);
  if (sys::connect(opened.fd.get(), address.get(), address.size) != 0) return failure(errno);
  return opened;
}

Opened accept_from(const Descriptor& listener) {
  const int fd = sys::accept4(listener.get(), SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return failure(errno);
  return {Descriptor(fd), 0};
}

ucred peer_of(const Descriptor& socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (sys::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    throw system_error("asking who is at the other end of a local socket", errno);
  }
  return peer;
}

int send_packet(const Descriptor& socket, const void* data, std::size_t n, int pass) noexcept {
  iovec part{const_cast<void*>(data), n};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (pass >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &pass, sizeof pass);
  }
  return sys::sendmsg(socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? errno : 0;
}

ssize_t receive_packet(const Descriptor& socket, void* data, std::size_t n,
                       Descriptor* passed) noexcept {
  iovec part{data, n};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (passed != nullptr) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
  }
  const ssize_t got = sys::recvmsg(socket.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return -errno;
  if (passed != nullptr) take_descriptors(message, passed);
  return got;
}

void wait_a_moment(pollfd* fds, std::size_t count, const Deadline& deadline, const Stop& stop) {
  const int ready = sys::poll(fds, static_cast<nfds_t>(count), deadline.milliseconds(kSlice));
  if (ready < 0) {
    if (errno != EINTR) throw system_error("poll", errno);
    for (std::size_t i = 0; i < count; ++i) fds[i].revents = 0;
  }
  if (stop && stop()) {
    throw Error(Status::aborted, "the wait for the other ranks was interrupted");
  }
}

}  // namespace coll

// SPDX-License-Identifier: Apache-2.0
// A network that a test may cut, and whether the kernel can say so.
#pragma once

#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstring>

#include "check.h"
#include "transport/descriptor.h"

namespace coll::testing {

// In a network of its own the loopback interface goes down: nobody says so to the sockets.
inline void set_loopback(bool up) {
  const Descriptor fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  CHECK(::ioctl(fd.get(), SIOCGIFFLAGS, &request) == 0);
  const int flags = up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP;
  request.ifr_flags = static_cast<short>(flags);
  CHECK(::ioctl(fd.get(), SIOCSIFFLAGS, &request) == 0);
}

// What Silence::look() reads; an emulator may answer with less.
inline bool kernel_tells_of_answers() {
  const Descriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  tcp_info info{};
  socklen_t size = sizeof info;
  return ::getsockopt(fd.get(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
         size >= offsetof(tcp_info, tcpi_last_ack_recv) + sizeof info.tcpi_last_ack_recv;
}

}  // namespace coll::testing

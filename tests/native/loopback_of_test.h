// SPDX-License-Identifier: Apache-2.0
// A network that a test may cut.
#pragma once

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

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

}  // namespace coll::testing

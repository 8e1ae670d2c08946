// SPDX-License-Identifier: Apache-2.0
// Packets and descriptors over abstract sockets of one machine (AF_UNIX, SOCK_SEQPACKET).
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <string>

#include "base/deadline.h"
#include "base/stop.h"
#include "transport/descriptor.h"

namespace coll {

// The outcome of a call that opens a socket: a descriptor, or the errno that stood in the way.
struct Opened {
  Descriptor fd;
  int error = 0;
};

// Non-blocking, close-on-exec.
Opened listen_at(const std::string& name, int backlog);
Opened connect_to(const std::string& name);
Opened accept_from(const Descriptor& listener);

// The process at the other end, as the kernel vouches for it. Throws Error where it cannot say.
ucred peer_of(const Descriptor& socket);

// One packet, with a descriptor where pass >= 0. Never waits. Returns 0 or an errno.
int send_packet(const Descriptor& socket, const void* data, std::size_t n, int pass = -1) noexcept;

// One packet: its size (longer ones are cut off), 0 at the end of the stream, or -errno. `passed`
// takes the descriptor that came along; without it the kernel drops any.
ssize_t receive_packet(const Descriptor& socket, void* data, std::size_t n,
                       Descriptor* passed = nullptr) noexcept;

// Waits for any of the events, for a signal, for 50 ms or for the deadline, whichever is first.
// Throws Error where poll() fails or `stop` says so.
void wait_a_moment(pollfd* fds, std::size_t count, const Deadline& deadline, const Stop& stop);

}  // namespace coll

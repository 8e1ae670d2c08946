// SPDX-License-Identifier: Apache-2.0
// TCP sockets as this library wants them: non-blocking, close-on-exec, without Nagle's delay, and
// with a bound on how long a peer that has vanished is believed to live.
#pragma once

#include "base/deadline.h"
#include "base/stop.h"
#include "transport/descriptor.h"
#include "transport/tcp_endpoint.h"

namespace coll {

// The longest sleep in poll(): how late a Stop can be asked.
inline constexpr int kPollSlice = 50;  // ms

struct TcpOptions {
  // After so long without a sign of life from its kernel an idle peer is taken for dead
  // (keep-alive). The kernel counts in whole seconds, and the least that it can do is about 2.
  double silence_s = 15;
  // Bytes in the kernel's buffers, 0: what the kernel thinks best, which grows with the need.
  int send_buffer = 0, receive_buffer = 0;
};

// A connection and where it leads; or an error, and no descriptor.
struct Connection {
  Descriptor fd;
  Endpoint peer;
  int error = 0;  // an errno; EAGAIN: nobody is there (accept), EINPROGRESS: not yet (connect)
};

class TcpListener {
 public:
  // Listens on that address only; port 0 lets the kernel choose one. Throws Error.
  TcpListener(const Endpoint& at, int backlog, const TcpOptions& options = {});

  // With the port that the kernel has chosen.
  const Endpoint& endpoint() const noexcept { return endpoint_; }
  int fd() const noexcept { return fd_.get(); }

  // The next connection, or EAGAIN at once. What goes wrong with one connection (it was reset
  // before it was taken, this process is out of descriptors) is no end of the listener.
  Connection accept() noexcept;

 private:
  TcpOptions options_;
  Descriptor fd_;
  Endpoint endpoint_;
};

// Begins to connect. error is 0 or EINPROGRESS: then wait until poll() says POLLOUT, and ask
// tcp_connected(). Anything else has failed.
Connection tcp_begin_connect(const Endpoint& to, const TcpOptions& options = {}) noexcept;
// 0: connected; EINPROGRESS: not yet; else the errno that ended it.
int tcp_connected(const Descriptor& fd) noexcept;

// All of it. Throws Error: refused, unreachable, too late, stopped.
Connection tcp_connect(const Endpoint& to, const Deadline& deadline, const Stop& stop = {},
                       const TcpOptions& options = {});

// Our side of a connection. Throws Error.
Endpoint local_endpoint(const Descriptor& fd);

// The kernel is to hold no more than about `bytes` of what was sent (0: what it thinks best). Left
// to itself it lets every connection fill whatever queue lies on the way, each with as much as its
// own past allows: then those of one machine get unequal shares of its link, and whatever takes
// turns with others waits for the last. A machine may allow less (net.core.wmem_max).
void tcp_bound_sending(const Descriptor& fd, int bytes) noexcept;

// Closing is to be a reset: the peer learns at once that what it has sent is lost.
void tcp_reset_on_close(const Descriptor& fd) noexcept;

}  // namespace coll

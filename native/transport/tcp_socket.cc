// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp_socket.h"

#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>

#include "base/system_error.h"

namespace coll {
namespace {

bool set_option(const Descriptor& fd, int level, int name, int value) noexcept {
  return sys::setsockopt(fd.get(), level, name, &value, sizeof value) == 0;
}

// Both before connect() and listen(), because the size of a window is agreed upon at the start.
bool set_buffers(const Descriptor& fd, const TcpOptions& options) noexcept {
  if (options.send_buffer > 0 && !set_option(fd, SOL_SOCKET, SO_SNDBUF, options.send_buffer))
    return false;
  return options.receive_buffer <= 0 ||
         set_option(fd, SOL_SOCKET, SO_RCVBUF, options.receive_buffer);
}

// Not TCP_USER_TIMEOUT: the kernel counts it also while the peer lives, answers, and does not read
// (a stopped process, a slow rank), and would cut off a peer that is only slow. What it is good
// for, data that nobody acknowledges, is watched by TcpStream::check_silence().
bool set_up(const Descriptor& fd, const TcpOptions& options) noexcept {
  constexpr int kProbes = 2;
  const double third = std::clamp(options.silence_s, 0.0, 3600.0) / (kProbes + 1);
  const int seconds = std::max(1, static_cast<int>(third));
  return set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1) &&
         set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1) &&
         set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds) &&
         set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, seconds) &&
         set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, options.silence_s < 3 ? 1 : kProbes);
}

Connection no_connection(const Endpoint& peer, int error) noexcept {
  return {Descriptor(), peer, error};
}

int new_socket(const Endpoint& of) noexcept {
  return sys::socket(of.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
}

using AskName = int (*)(int, sockaddr*, socklen_t*) noexcept;

bool name_of(const Descriptor& fd, AskName ask, Endpoint* endpoint) {
  sockaddr_storage room{};
  socklen_t size = sizeof room;
  if (ask(fd.get(), reinterpret_cast<sockaddr*>(&room), &size) != 0) return false;
  *endpoint = Endpoint::of(room);
  return true;
}

// Where nobody listens at a port of this machine, the kernel may take that very port for our end,
// and connect the socket with itself.
bool connected_with_itself(const Descriptor& fd) noexcept {
  Endpoint here, there;
  return name_of(fd, sys::getsockname, &here) && name_of(fd, sys::getpeername, &there) &&
         here == there;
}

}  // namespace

TcpListener::TcpListener(const Endpoint& at, int backlog, const TcpOptions& options)
    : options_(options), fd_(new_socket(at)) {
  const std::string what = "listening on " + at.text();
  if (!fd_ || !set_buffers(fd_, options)) throw system_error(what, errno);
  // Or a port that was asked for stays taken for a minute after its last connection.
  if (at.port() != 0 && !set_option(fd_, SOL_SOCKET, SO_REUSEADDR, 1))
    throw system_error(what, errno);
  // An IPv6 address means just that, also where it is ::.
  if (at.is_v6() && !set_option(fd_, IPPROTO_IPV6, IPV6_V6ONLY, 1)) throw system_error(what, errno);
  if (sys::bind(fd_.get(), at.data(), at.size()) != 0) throw system_error(what, errno);
  if (sys::listen(fd_.get(), backlog) != 0) throw system_error(what, errno);
  endpoint_ = local_endpoint(fd_);
}

Connection TcpListener::accept() noexcept {
  Descriptor fd(sys::accept4(fd_.get(), SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd) return no_connection({}, errno);
  Endpoint peer;
  if (!name_of(fd, sys::getpeername, &peer) || !set_up(fd, options_))
    return no_connection(peer, errno);
  return {std::move(fd), peer, 0};
}

Connection tcp_begin_connect(const Endpoint& to, const TcpOptions& options) noexcept {
  Descriptor fd(new_socket(to));
  if (!fd || !set_buffers(fd, options) || !set_up(fd, options)) return no_connection(to, errno);
  if (sys::connect(fd.get(), to.data(), to.size()) == 0) return {std::move(fd), to, 0};
  if (errno != EINPROGRESS && errno != EALREADY) return no_connection(to, errno);
  return {std::move(fd), to, EINPROGRESS};
}

int tcp_connected(const Descriptor& fd) noexcept {
  pollfd ready{fd.get(), POLLOUT, 0};
  const int n = sys::poll(&ready, 1, 0);
  if (n < 0) return errno == EINTR ? EINPROGRESS : errno;
  if (n == 0) return EINPROGRESS;
  int error = 0;
  socklen_t size = sizeof error;
  if (sys::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error == 0 && connected_with_itself(fd) ? ECONNREFUSED : error;
}

Connection tcp_connect(const Endpoint& to, const Deadline& deadline, const Stop& stop,
                       const TcpOptions& options) {
  const std::string what = "connecting to " + to.text();
  Connection connection = tcp_begin_connect(to, options);
  while (connection.error == EINPROGRESS) {
    pollfd ready{connection.fd.get(), POLLOUT, 0};
    if (sys::poll(&ready, 1, deadline.milliseconds(kPollSlice)) < 0 && errno != EINTR) {
      throw system_error(what, errno);
    }
    connection.error = tcp_connected(connection.fd);
    if (connection.error != EINPROGRESS) break;
    if (stop && stop()) throw Error(Status::aborted, what + " was interrupted");
    if (deadline.passed()) {
      throw Error(Status::timeout, what +
                                       " took too long: nobody has answered; is that host up, "
                                       "and does a firewall let the port through?");
    }
  }
  if (connection.error != 0) throw system_error(what, connection.error);
  return connection;
}

Endpoint local_endpoint(const Descriptor& fd) {
  Endpoint endpoint;
  if (!name_of(fd, sys::getsockname, &endpoint)) {
    throw system_error("asking for the address of a socket", errno);
  }
  return endpoint;
}

void tcp_bound_sending(const Descriptor& fd, int bytes) noexcept {
  if (bytes > 0) set_option(fd, SOL_SOCKET, SO_SNDBUF, bytes);
}

void tcp_reset_on_close(const Descriptor& fd) noexcept {
  const linger now{1, 0};
  sys::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

}  // namespace coll

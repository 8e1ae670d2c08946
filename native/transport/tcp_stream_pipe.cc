// SPDX-License-Identifier: Apache-2.0
// Where the bytes of a stream go: through the socket, or through memory, and what the socket is for
// then.
#include <algorithm>
#include <array>
#include <cerrno>

#include "transport/tcp_stream.h"

namespace coll {

// Bells that nobody has heard would make a reset of an end.
TcpStream::~TcpStream() {
  if (pipe_ != nullptr && fd_) hear_bell();
}

// Both have the results of sendmsg() and recvmsg().
ssize_t TcpStream::put(msghdr* message) noexcept {
  if (pipe_ == nullptr) return sys::sendmsg(fd_.get(), message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (pipe_error_ != 0) {
    errno = pipe_error_;
    return -1;
  }
  const std::size_t n = pipe_->write(message->msg_iov, message->msg_iovlen);
  if (n == 0) {
    errno = EAGAIN;
    return -1;
  }
  ring_bell();
  return static_cast<ssize_t>(n);
}

// What the peer has written before its end is read before the end is.
ssize_t TcpStream::get(msghdr* message) noexcept {
  if (pipe_ == nullptr) return sys::recvmsg(fd_.get(), message, MSG_DONTWAIT);
  const std::size_t n = pipe_->read(message->msg_iov, message->msg_iovlen);
  if (n > 0) {
    ring_bell();
    return static_cast<ssize_t>(n);
  }
  if (pipe_ends_ && pipe_error_ == 0) return 0;
  errno = pipe_ends_ ? pipe_error_ : EAGAIN;
  return -1;
}

// Where the socket takes no more there are bells enough in it.
void TcpStream::ring_bell() noexcept {
  if (!pipe_->bell_due()) return;
  std::byte bell{};
  iovec part{&bell, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  sys::sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void TcpStream::hear_bell() noexcept {
  std::array<std::byte, 256> bells;
  iovec part{bells.data(), bells.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  while (!pipe_ends_) {
    const ssize_t n = sys::recvmsg(fd_.get(), &message, MSG_DONTWAIT);
    if (n > 0) continue;
    if (n < 0 && errno == EAGAIN) return;
    pipe_ends_ = true;
    pipe_error_ = n < 0 ? errno : 0;
  }
}

// The kernel may wake for every packet of a message that is of no use before all of it has come:
// each time costs whoever computes on this core its turn, and us a system call or four.
void TcpStream::ask_for_enough() noexcept {
  const std::uint64_t rest = in_payload_ ? header_.length - incoming_.done : 1;
  const int enough = static_cast<int>(std::min<std::uint64_t>(rest, kEnough));
  if (enough == low_mark_) return;
  if (sys::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVLOWAT, &enough, sizeof enough) != 0) {
    return lose(errno, "asking for a message");
  }
  low_mark_ = enough;
}

bool TcpStream::doze() noexcept {
  if (state_ != StreamState::open) return true;
  if (pipe_ == nullptr) {
    ask_for_enough();
    return state_ == StreamState::open;
  }
  if (pipe_ends_ && !held_back_) return false;
  return pipe_->doze(!held_back_, sent_ != posted_);
}

void TcpStream::wake() noexcept {
  if (pipe_ != nullptr && state_ == StreamState::open) pipe_->wake();
}

}  // namespace coll

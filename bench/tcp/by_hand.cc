// SPDX-License-Identifier: Apache-2.0
#include "by_hand.h"

#include <sys/socket.h>
#include <sys/types.h>

#include <cerrno>
#include <stdexcept>

namespace tcp_bench {

void exchange_by_hand(int fd, std::span<const std::byte> out, std::span<std::byte> in) {
  std::size_t sent = 0, got = 0;
  const auto step = [](ssize_t n, std::size_t* sum) {
    if (n > 0) *sum += static_cast<std::size_t>(n);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
      throw std::runtime_error("the connection is gone");
    }
  };
  while (sent < out.size() || got < in.size()) {
    if (got < in.size()) step(::recv(fd, in.data() + got, in.size() - got, 0), &got);
    if (sent < out.size()) {
      step(::send(fd, out.data() + sent, out.size() - sent, MSG_NOSIGNAL), &sent);
    }
  }
}

}  // namespace tcp_bench

// SPDX-License-Identifier: Apache-2.0
// What the tests of the rendezvous share: identities, and peers that do not keep to the rules.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "bootstrap/rendezvous.h"
#include "check.h"
#include "child.h"

namespace coll::testing {

using Clock = std::chrono::steady_clock;

// A job that no other test, and no other run of the tests, has.
inline Identity identity(int rank, int ranks, int attempt = 0) {
  return {rank, ranks, std::string("test ") + std::to_string(::getpid()) + check::running, attempt};
}

// The same in a forked child, whose pid is another.
inline Identity with_rank(Identity of, int rank) {
  of.rank = rank;
  return of;
}

inline SegmentShape shape_of(int ranks) {
  return {static_cast<std::uint32_t>(ranks), 2, 2, 64, 128};
}

inline Membership meet(const Identity& who, double timeout_s = 10, const Stop& stop = {}) {
  return rendezvous(who, shape_of(who.ranks), timeout_s, stop);
}

inline bool says(const Error& error, const std::string& part) {
  return std::string(error.what()).find(part) != std::string::npos;
}

// A connection to rank 0 by hand.
class Stranger {
 public:
  explicit Stranger(const Identity& host) {
    const std::string name = socket_name(::geteuid(), host);
    const auto end = Clock::now() + std::chrono::seconds(10);
    Opened opened = connect_to(name);
    while (opened.error != 0) {
      if (Clock::now() > end) check::fail("rank 0 does not open");
      ::usleep(500);
      opened = connect_to(name);
    }
    socket_ = std::move(opened.fd);
  }

  void say(const void* data, std::size_t n) { send_packet(socket_, data, n); }
  void say(const Hello& hello) { say(&hello, sizeof hello); }

  // The next packet of rank 0, and its descriptor; none where the connection has ended.
  std::unique_ptr<Notice> hear() {
    pollfd fd{socket_.get(), POLLIN, 0};
    CHECK(::poll(&fd, 1, 10'000) == 1);
    char packet[1024];
    ssize_t n = receive_packet(socket_, packet, sizeof packet, &memfd);
    if (n == -ECONNRESET) n = receive_packet(socket_, packet, sizeof packet, &memfd);
    if (n <= 0) return nullptr;
    return std::make_unique<Notice>(read_notice(packet, static_cast<std::size_t>(n)));
  }

  // The sentence with which rank 0 refuses it.
  std::string refused() {
    const std::unique_ptr<Notice> notice = hear();
    CHECK(notice && notice->kind == NoticeKind::refused);
    CHECK(!memfd);
    CHECK(hear() == nullptr);
    return notice->text;
  }

  void leave() { socket_.reset(); }

  Descriptor memfd;

 private:
  Descriptor socket_;
};

}  // namespace coll::testing

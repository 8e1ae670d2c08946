// SPDX-License-Identifier: Apache-2.0
// What the tests of TCP streams share: connections over loopback, and a receiver that checks every
// byte.
#pragma once

#include <fcntl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "check.h"
#include "child.h"
#include "transport/faults.h"
#include "transport/tcp_set.h"
#include "transport/tcp_socket.h"
#include "transport/tcp_stream.h"

namespace coll::testing {

using Bytes = std::vector<std::byte>;

inline bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline Endpoint loopback() { return Endpoint::parse("127.0.0.1:0"); }

// Both ends of one connection. Throws Error.
struct Ends {
  Connection a, b;
};
inline Ends connected(const TcpOptions& options = {}) {
  TcpListener listener(loopback(), 4, options);
  Ends ends;
  ends.a = tcp_connect(listener.endpoint(), Deadline(10), {}, options);
  pollfd ready{listener.fd(), POLLIN, 0};
  CHECK(::poll(&ready, 1, 5000) == 1);
  ends.b = listener.accept();
  if (ends.b.error != 0) throw Error(Status::system, "accept");
  return ends;
}

// Both ends of memory for a pair. Throws Error.
struct PipeEnds {
  std::unique_ptr<LocalPipe> a, b;
};
inline PipeEnds piped() {
  const LocalPipe::Key key{7, 9};
  PipeEnds ends;
  ends.a = LocalPipe::make(key);
  ends.b = LocalPipe::open(Descriptor(::fcntl(ends.a->fd(), F_DUPFD_CLOEXEC, 0)), key);
  return ends;
}

// The n-th message of a sender with this seed: its payload can be told from all others.
inline Bytes payload_of(std::uint64_t seed, std::uint32_t n, std::size_t bytes) {
  std::minstd_rand random(static_cast<unsigned>(seed * 7919 + n + 1));
  Bytes data(bytes);
  for (std::byte& b : data) b = static_cast<std::byte>(random() >> 8U);
  return data;
}

// Takes what comes, in order, and keeps it. Holds back from message `hold_at` on until told
// otherwise.
class Book final : public TcpReceiver {
 public:
  Landing land(const TcpHeader& header) noexcept override {
    if (pages.size() >= hold_at) return {Landing::Verdict::later, {}};
    if (header.kind == kRefused) return {Landing::Verdict::refuse, {}};
    const std::size_t less = header.kind == kMisplaced ? 1 : 0;
    place.assign(header.length - less, std::byte{0xEE});
    return {Landing::Verdict::take, place};
  }
  void landed(const TcpHeader& header) noexcept override {
    headers.push_back(header);
    pages.push_back(std::move(place));
  }
  bool waits() const noexcept override { return due; }

  static constexpr std::uint8_t kRefused = 66, kMisplaced = 67;

  std::vector<TcpHeader> headers;
  std::vector<Bytes> pages;
  std::size_t hold_at = SIZE_MAX;
  bool due = true;

 private:
  Bytes place;
};

inline TcpHeader header_of(std::uint32_t n, std::size_t bytes) {
  TcpHeader header;
  header.kind = 3;
  header.flags = 1;
  header.round = n * 3;
  header.group = 0x0123456789ABCDEFULL + n;
  header.sequence = n;
  header.tile = n * 5;
  header.length = bytes;
  return header;
}

// One end: its stream, what it sends, what it has got.
struct Side {
  Side(Connection connection, std::uint64_t seed_of_mine, const TcpLimits& limits = {},
       std::unique_ptr<LocalPipe> pipe = nullptr)
      : seed(seed_of_mine),
        stream(std::move(connection.fd), connection.peer, book, limits, std::move(pipe)) {}

  bool say(std::size_t bytes) {
    const auto n = static_cast<std::uint32_t>(said.size());
    said.push_back(payload_of(seed, n, bytes));
    if (stream.post(header_of(n, bytes), said.back().data())) return true;
    said.pop_back();
    return false;
  }
  bool all_sent() const { return stream.sent() == stream.posted(); }
  // Throws unless these are the first messages of `other`, byte for byte.
  void check_heard(const Side& other) const {
    CHECK(book.pages.size() <= other.said.size());
    for (std::size_t i = 0; i < book.pages.size(); ++i) {
      CHECK(book.pages[i] == other.said[i]);
      CHECK(book.headers[i] == header_of(static_cast<std::uint32_t>(i), other.said[i].size()));
    }
  }

  std::uint64_t seed;
  Book book;
  std::vector<Bytes> said;
  TcpStream stream;
};

struct Pair {
  explicit Pair(const TcpOptions& options = {}, const TcpLimits& limits = {})
      : Pair(connected(options), {}, limits) {}
  explicit Pair(PipeEnds pipes, const TcpLimits& limits = {})
      : Pair(connected(), std::move(pipes), limits) {}

  // Turns of both until done() or `turns` are over; whether done() came.
  template <class Done>
  bool turn_until(Done done, int turns = 1'000'000) {
    for (int i = 0; i < turns; ++i) {
      if (done()) return true;
      if (a.stream.progress() + b.stream.progress() == 0) ::usleep(50);
    }
    return done();
  }
  bool all_heard() const {
    return a.book.pages.size() == b.said.size() && b.book.pages.size() == a.said.size();
  }

  Side a, b;

 private:
  Pair(Ends ends, PipeEnds pipes, const TcpLimits& limits)
      : a(std::move(ends.a), 1, limits, std::move(pipes.a)),
        b(std::move(ends.b), 2, limits, std::move(pipes.b)) {}
};

// Any order of magnitude up to `most` is as likely as another; nothing at all now and then.
inline std::size_t random_size(std::minstd_rand& random, int most_log2) {
  if (random() % 8 == 0) return 0;
  const unsigned log2 = random() % static_cast<unsigned>(most_log2 + 1);
  return (std::size_t{1} << log2) + random() % (std::size_t{1} << log2);
}

// Random messages both ways at once; throws unless all arrive as they were.
inline void exchange(Pair& pair, unsigned seed, int messages, int most_log2) {
  std::minstd_rand random(seed + 1);
  std::vector<std::size_t> to_b, to_a;
  for (int i = 0; i < messages; ++i) {
    to_b.push_back(random_size(random, most_log2));
    to_a.push_back(random_size(random, most_log2));
  }
  const bool over = pair.turn_until([&] {
    while (pair.a.said.size() < to_b.size() && pair.a.say(to_b[pair.a.said.size()])) {
    }
    while (pair.b.said.size() < to_a.size() && pair.b.say(to_a[pair.b.said.size()])) {
    }
    return pair.a.said.size() == to_b.size() && pair.b.said.size() == to_a.size() &&
           pair.all_heard();
  });
  if (!over) check::fail(pair.a.stream.why() + "; " + pair.b.stream.why());
  CHECK(pair.a.all_sent() && pair.b.all_sent());
  pair.a.check_heard(pair.b);
  pair.b.check_heard(pair.a);
}

// What a peer may do that is none of ours.
inline void write_raw(const Descriptor& fd, const void* data, std::size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::send(fd.get(), at, bytes, MSG_NOSIGNAL);
    if (n < 0) return;
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
}

}  // namespace coll::testing

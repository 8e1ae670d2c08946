// SPDX-License-Identifier: Apache-2.0
// Endpoints, listeners and connections.
#include "transport/tcp_socket.h"

#include <fcntl.h>
#include <net/if.h>
#include <netinet/tcp.h>

#include <cerrno>

#include "instrumented.h"
#include "tcp_of_test.h"

namespace {

using namespace coll;
using namespace coll::testing;

int option(const Descriptor& fd, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  CHECK(::getsockopt(fd.get(), level, name, &value, &size) == 0);
  return value;
}

TEST(endpoints_are_text_both_ways) {
  for (const char* text : {"127.0.0.1:0", "192.0.2.7:4711", "255.255.255.255:65535", "[::1]:80",
                           "[2001:db8::7]:65535", "[fe80::1%2]:1"}) {
    CHECK(Endpoint::parse(text).text() == text);
  }
  CHECK(Endpoint::parse("10.1.2.3").text() == "10.1.2.3:0");
  CHECK(Endpoint::parse("::1").text() == "[::1]:0");
  CHECK(Endpoint::parse("[::1]").text() == "[::1]:0");
  CHECK(Endpoint().text() == "0.0.0.0:0");
}

TEST(what_is_no_endpoint_is_refused) {
  for (const char* text : {"",
                           ":",
                           ":80",
                           "1.2.3:80",
                           "1.2.3.4:65536",
                           "1.2.3.4:-1",
                           "1.2.3.4:8x",
                           "1.2.3.4:",
                           "[::1",
                           "[::1]80",
                           "[::1]:",
                           "[::1]:65536",
                           "host:80",
                           "[host]:80",
                           "fe80::1%eth",
                           "fe80::1%",
                           "1.2.3.4%2:80",
                           " 1.2.3.4:80",
                           "1.2.3.4.5:80",
                           "[1.2.3.4:80"}) {
    const Error error = thrown<Error>([&] { Endpoint::parse(text); });
    CHECK(error.status == Status::invalid_argument);
    CHECK(says(error.what(), "'" + std::string(text) + "'"));
  }
}

TEST(endpoints_compare_by_all_that_they_say) {
  const Endpoint one = Endpoint::parse("127.0.0.1:80");
  CHECK(one == Endpoint::parse("127.0.0.1:80"));
  CHECK(!(one == one.with_port(81)));
  CHECK(!(one == Endpoint::parse("127.0.0.2:80")));
  CHECK(!(Endpoint::parse("[::1]:80") == Endpoint::parse("[::2]:80")));
  CHECK(!(Endpoint::parse("[fe80::1%1]:80") == Endpoint::parse("[fe80::1%2]:80")));
  CHECK(!(one == Endpoint::parse("[::ffff:127.0.0.1]:80")));
  CHECK(Endpoint().is_every_address() && Endpoint::parse("[::]:0").is_every_address());
  CHECK(!one.is_every_address() && !Endpoint::parse("[::1]:0").is_every_address());
}

TEST(an_interface_has_an_address) {
  CHECK(endpoint_of_interface("lo") == loopback());
  const Error error = thrown<Error>([] { endpoint_of_interface("no_such0"); });
  CHECK(error.status == Status::invalid_argument);
  CHECK(says(error.what(), "'no_such0'") && says(error.what(), "lo"));
  faults::arm({SystemCall::getifaddrs, 1, ENOMEM, false});
  CHECK(thrown<Error>([] { endpoint_of_interface("lo"); }).status == Status::out_of_memory);
  faults::clear();
}

TEST(the_route_to_a_peer_names_our_side) {
  CHECK(endpoint_towards(Endpoint::parse("127.0.0.1:4711")) == loopback());
  CHECK(endpoint_towards(Endpoint::parse("127.3.2.1")) == loopback());
  CHECK(says(thrown<Error>([] { endpoint_towards(Endpoint::parse("255.255.255.255:9")); }).what(),
             "255.255.255.255:9"));
}

TEST(a_listener_listens_where_it_is_told_and_nowhere_else) {
  TcpListener listener(loopback(), 4);
  CHECK(listener.endpoint().port() != 0);
  CHECK(listener.endpoint().with_port(0) == loopback());
  CHECK(listener.accept().error == EAGAIN);
  const Error error = thrown<Error>([&] {
    tcp_connect(Endpoint::parse("127.0.0.2").with_port(listener.endpoint().port()), Deadline(5));
  });
  CHECK(error.status == Status::system);
  CHECK(says(error.what(), "127.0.0.2:") && says(error.what(), "ECONNREFUSED"));
  const Error taken = thrown<Error>([&] { TcpListener again(listener.endpoint(), 4); });
  CHECK(says(taken.what(), listener.endpoint().text()) && says(taken.what(), "EADDRINUSE"));
}

// What the kernel does, once in thousands of attempts, where nobody listens at a port of its own.
TEST(a_socket_that_is_connected_with_itself_was_refused) {
  const Descriptor fd(::socket(AF_INET, SOCK_STREAM, 0));
  CHECK(fd.get() >= 0);
  CHECK(::bind(fd.get(), loopback().data(), loopback().size()) == 0);
  const Endpoint self = local_endpoint(fd);
  CHECK(::connect(fd.get(), self.data(), self.size()) == 0);
  CHECK(tcp_connected(fd) == ECONNREFUSED);
}

TEST(both_ends_are_set_up) {
  TcpOptions options;
  options.silence_s = 30;
  const Ends ends = connected(options);
  for (const Descriptor* fd : {&ends.a.fd, &ends.b.fd}) {
    CHECK(option(*fd, IPPROTO_TCP, TCP_NODELAY) == 1);
    CHECK(option(*fd, SOL_SOCKET, SO_KEEPALIVE) == 1);
    CHECK(option(*fd, IPPROTO_TCP, TCP_KEEPIDLE) == 10);
    CHECK(option(*fd, IPPROTO_TCP, TCP_KEEPINTVL) == 10);
    CHECK(option(*fd, IPPROTO_TCP, TCP_KEEPCNT) == 2);
    CHECK((::fcntl(fd->get(), F_GETFD) & FD_CLOEXEC) != 0);
    CHECK((::fcntl(fd->get(), F_GETFL) & O_NONBLOCK) != 0);
  }
  CHECK(ends.b.peer == local_endpoint(ends.a.fd));
  CHECK(ends.a.peer == local_endpoint(ends.b.fd));
}

TEST(what_the_kernel_holds_can_be_bounded) {
  const Ends ends = connected({});
  const int free = option(ends.a.fd, SOL_SOCKET, SO_SNDBUF);
  tcp_bound_sending(ends.a.fd, 0);
  CHECK(option(ends.a.fd, SOL_SOCKET, SO_SNDBUF) == free);
  tcp_bound_sending(ends.a.fd, 64 << 10);
  CHECK(option(ends.a.fd, SOL_SOCKET, SO_SNDBUF) == 128 << 10);
}

TEST(ipv6_works_where_there_is_any) {
  Endpoint at = Endpoint::parse("[::1]:0");
  try {
    TcpListener listener(at, 4);
    const Connection a = tcp_connect(listener.endpoint(), Deadline(5));
    CHECK(local_endpoint(a.fd).is_v6());
    CHECK(says(local_endpoint(a.fd).text(), "[::1]:"));
  } catch (const Error& error) {
    CHECK(says(error.what(), "EADDRNOTAVAIL") || says(error.what(), "EAFNOSUPPORT") ||
          says(error.what(), "errno 97"));
  }
}

// A listener whose queue is full answers nobody: the way to a host that is silent.
TEST(a_connection_that_nobody_answers_ends_in_time) {
  TcpListener listener(loopback(), 0);
  std::vector<Connection> queue;
  for (int i = 0; i < 4; ++i) queue.push_back(tcp_begin_connect(listener.endpoint()));
  const auto begin = Deadline::Clock::now();
  const Error late = thrown<Error>([&] { tcp_connect(listener.endpoint(), Deadline(0.05)); });
  CHECK(late.status == Status::timeout);
  CHECK(says(late.what(), listener.endpoint().text()));
  const Error stopped =
      thrown<Error>([&] { tcp_connect(listener.endpoint(), Deadline(20), [] { return true; }); });
  CHECK(stopped.status == Status::aborted);
  CHECK(Deadline::Clock::now() - begin < check::promised(std::chrono::seconds(2)));
}

TEST(the_nth_call_of_a_connection_fails) {
  const int before = check::descriptors();
  std::uint64_t n = 0;
  for (bool fired = true; fired;) {
    CHECK(++n < 100);
    bool clean = true;
    faults::arm({SystemCall::any, n, EIO, false});
    try {
      const Ends ends = connected();
    } catch (const Error& error) {
      clean = false;
      CHECK(std::string(error.what()).size() > 5);
    }
    fired = faults::fired() > 0;
    faults::clear();
    CHECK(fired || clean);
    CHECK(check::descriptors() == before);
  }
  CHECK(n > 15);
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// Two ranks on one machine that are told that they are on two, so that their bytes pass the
// loopback by TCP; beside them a bare socket between the same two processes. Blocks of all ways in
// turn, and between rounds how far apart the two cores are; one JSON object. `python -m
// bench.hosts.loopback` judges it.
//
//   coll_loopback ROUNDS BYTES     each way, in one call
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "../limits/probe.h"
#include "../limits/team.h"
#include "../tcp/by_hand.h"
#include "collectives.h"

namespace loopback_bench {
namespace {

using limits::require;
using tcp_bench::exchange_by_hand;

// All move as many bytes each way: an allgather in place is a pure exchange, else it copies this
// rank's part beside it; allreduce of two ranks folds.
enum class Way { raw, in_place, allgather, allreduce };
constexpr std::array kWays = {Way::raw, Way::in_place, Way::allgather, Way::allreduce};
constexpr std::array kNames = {"raw", "in place", "allgather", "allreduce"};
constexpr int kCalls = 8;         // of a block
constexpr unsigned kEndS = 240;   // by then whoever waits for a lost peer is ended
constexpr double kTimeoutS = 60;  // of a call

// ---- sockets --------------------------------------------------------------------------------

int checked(int result, const char* what) {
  if (result < 0) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
  return result;
}

sockaddr* plain(sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); }

void make_ready(int fd) {
  const int on = 1;
  checked(::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), "TCP_NODELAY");
  checked(::fcntl(fd, F_SETFL, O_NONBLOCK), "O_NONBLOCK");
}

// Two ends of a TCP connection over the loopback, for the process and its child.
std::array<int, 2> raw_pair() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  const int listener = checked(::socket(AF_INET, SOCK_STREAM, 0), "socket");
  checked(::bind(listener, plain(address), length), "bind");
  checked(::listen(listener, 1), "listen");
  checked(::getsockname(listener, plain(address), &length), "getsockname");
  const int connected = checked(::socket(AF_INET, SOCK_STREAM, 0), "socket");
  checked(::connect(connected, plain(address), length), "connect");
  const int accepted = checked(::accept(listener, nullptr, nullptr), "accept");
  ::close(listener);
  make_ready(connected);
  make_ready(accepted);
  return {accepted, connected};
}

// What has passed the loopback, headers included, since the machine began.
long long loopback_bytes() {
  std::ifstream file("/sys/class/net/lo/statistics/tx_bytes");
  long long bytes = 0;
  if (!(file >> bytes)) throw std::runtime_error("cannot read the loopback's counter in /sys");
  return bytes;
}

// ---- a rank ---------------------------------------------------------------------------------

struct Introduction {
  char door[512];
  unsigned char secret[COLL_SECRET_BYTES];
};

// Meets the other rank over `aside`; the secret is that of rank 0.
coll_comm* joined(int rank, int aside) {
  coll_listener* listener = nullptr;
  require(coll_listener_open("127.0.0.1", &listener));
  std::array<Introduction, 2> both{};
  Introduction& mine = both[static_cast<std::size_t>(rank)];
  if (coll_listener_text(listener, mine.door, sizeof(mine.door)) >= sizeof(mine.door)) {
    throw std::runtime_error("the text of a door is too long");
  }
  require(coll_make_secret(mine.secret));
  exchange_by_hand(aside, std::as_bytes(std::span(&mine, 1)),
                   std::as_writable_bytes(std::span(&both[static_cast<std::size_t>(1 - rank)], 1)));
  const std::array doors = {static_cast<const char*>(both[0].door),
                            static_cast<const char*>(both[1].door)};
  const std::array hosts = {"here", "there"};
  coll_wire_options options{};
  options.size = sizeof(options);
  options.rank = rank;
  options.ranks = 2;
  options.timeout = kTimeoutS;
  options.secret = both[0].secret;
  options.doors = doors.data();
  options.hosts = hosts.data();
  options.spin = -1;
  coll_comm* comm = nullptr;
  require(coll_init_wire(&options, listener, &comm));
  return comm;
}

class Rank {
 public:
  Rank(int rank, int raw, int aside, std::size_t bytes)
      : rank_(rank),
        raw_(raw),
        aside_(aside),
        comm_(joined(rank, aside)),
        x_(bytes / sizeof(float)),
        out_(2 * x_.size()) {}
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;
  ~Rank() { coll_close(comm_); }

  // Microseconds of a call, until both ranks are done.
  double block(Way way) {
    ++turn_;
    std::ranges::fill(x_, value_of(rank_));
    std::ranges::copy(x_, own());
    meet();
    const double begin = limits::now_ns();
    for (int call = 0; call < kCalls; ++call) make(way);
    meet();
    const double us = (limits::now_ns() - begin) / 1000 / kCalls;
    check(way);
    return us;
  }

  // Nanoseconds of a line between the cores, which rank 0 probes while the other one sleeps.
  double line(std::span<const int> cores) const {
    double ns = 0;
    if (rank_ == 0) {
      ns = limits::line_latency_ns(cores[0], cores[1]);
    } else {
      pollfd told{aside_, POLLIN, 0};
      checked(::poll(&told, 1, -1), "poll");
    }
    meet();
    return ns;
  }

 private:
  // Of this turn, so that what an earlier one has left is wrong.
  float value_of(int rank) const { return static_cast<float>(2 * turn_ + rank); }

  // Where this rank's part lies in what is gathered.
  float* own() { return out_.data() + x_.size() * static_cast<std::size_t>(rank_); }

  void meet() const {
    std::byte one{};
    exchange_by_hand(aside_, {&one, 1}, {&one, 1});
  }

  void make(Way way) {
    const std::size_t count = x_.size();
    switch (way) {
      case Way::raw:
        exchange_by_hand(raw_, std::as_bytes(std::span(x_)),
                         std::as_writable_bytes(std::span(out_).first(count)));
        return;
      case Way::in_place:
        require(coll_allgather(comm_, own(), out_.data(), count, COLL_FLOAT32));
        return;
      case Way::allgather:
        require(coll_allgather(comm_, x_.data(), out_.data(), count, COLL_FLOAT32));
        return;
      case Way::allreduce:
        require(coll_allreduce(comm_, x_.data(), out_.data(), count, COLL_FLOAT32, COLL_SUM));
    }
  }

  void check(Way way) const {
    const auto first = std::span(out_).first(x_.size()), second = std::span(out_).last(x_.size());
    const auto holds = [](std::span<const float> part, float value) {
      return std::ranges::all_of(part, [value](float element) { return element == value; });
    };
    const bool right = way == Way::raw ? holds(first, value_of(1 - rank_))
                       : way == Way::allreduce
                           ? holds(first, value_of(0) + value_of(1))
                           : holds(first, value_of(0)) && holds(second, value_of(1));
    if (!right) {
      throw std::runtime_error(std::string("wrong elements: ") +
                               kNames[static_cast<std::size_t>(way)]);
    }
  }

  int rank_, raw_, aside_;
  coll_comm* comm_;
  std::vector<float> x_, out_;
  int turn_ = 0;
};

// Blocks of all ways in every round, another one first each time. Rank 0 prints them, and the lines
// before and after each round.
void play(Rank& rank, std::span<const int> cores, long rounds, bool prints) {
  const char* comma = "";
  std::vector<double> lines;
  for (long round = -1; round < rounds; ++round) {  // the first warms up
    for (std::size_t i = 0; i < kWays.size(); ++i) {
      const Way way = kWays[(i + static_cast<std::size_t>(round + 1)) % kWays.size()];
      const long long before = loopback_bytes();
      const double us = rank.block(way);
      const long long counted = loopback_bytes() - before;
      if (!prints || round < 0) continue;
      std::printf("%s\n  {\"round\": %ld, \"way\": \"%s\", \"us\": %.1f, \"counted\": %lld}", comma,
                  round, kNames[static_cast<std::size_t>(way)], us, counted);
      comma = ",";
    }
    lines.push_back(rank.line(cores));
  }
  if (!prints) return;
  std::printf("\n], \"lines\": [");
  for (std::size_t i = 0; i < lines.size(); ++i) std::printf("%s%.1f", i ? ", " : "", lines[i]);
  std::printf("]}\n");
}

}  // namespace

void run(int argc, char** argv) {
  const long rounds = argc == 3 ? std::strtol(argv[1], nullptr, 10) : 0;
  const long bytes = argc == 3 ? std::strtol(argv[2], nullptr, 10) : 0;
  if (rounds < 1 || bytes < 8 || bytes % 8 != 0) {
    throw std::runtime_error("usage: coll_loopback ROUNDS BYTES, BYTES a multiple of 8");
  }
  // A core for each rank: one that spins beside the other would keep it from its own.
  const std::vector<int> cores = limits::usable_cores();
  if (cores.size() < 2) throw std::runtime_error("two usable cores are needed");
  std::array<int, 2> aside{};
  checked(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, aside.data()), "socketpair");
  const std::array<int, 2> raw = raw_pair();
  const pid_t child = checked(::fork(), "fork");
  const std::size_t self = child == 0 ? 1 : 0;
  ::alarm(kEndS);
  ::close(raw[1 - self]);
  ::close(aside[1 - self]);
  limits::pin(cores[self]);
  {
    Rank rank(static_cast<int>(self), raw[self], aside[self], static_cast<std::size_t>(bytes));
    if (self == 0) std::printf("{\"calls\": %d, \"bytes\": %ld, \"blocks\": [", kCalls, bytes);
    play(rank, cores, rounds, self == 0);
  }
  if (self == 1) std::_Exit(0);
  int status = 0;
  if (::waitpid(child, &status, 0) != child || status != 0) {
    throw std::runtime_error("the other rank failed");
  }
}

}  // namespace loopback_bench

int main(int argc, char** argv) {
  try {
    loopback_bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "coll_loopback: %s\n", error.what());
    return 1;
  }
}

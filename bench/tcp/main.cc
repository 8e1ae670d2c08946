// SPDX-License-Identifier: Apache-2.0
// Streams beside the best that we know to do with a bare socket: two processes exchange n bytes
// each way over loopback, again and again; both ways of doing it in turn, over connections of the
// same pair of processes.
//   coll_tcp [rounds]    a line for each size: microseconds by hand and by stream, their ratio
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "../limits/probe.h"
#include "by_hand.h"
#include "transport/tcp_set.h"
#include "transport/tcp_socket.h"
#include "transport/tcp_stream.h"

namespace tcp_bench {
namespace {

using namespace coll;

struct Row {
  std::size_t bytes;
  int calls;  // exchanges in one measurement
};
constexpr Row kRows[] = {{8, 400}, {4096, 400}, {65536, 100}, {1U << 20U, 16}, {8U << 20U, 3}};

class Inbox final : public TcpReceiver {
 public:
  explicit Inbox(std::vector<std::byte>& place) : place_(place) {}
  Landing land(const TcpHeader&) noexcept override {
    return open ? Landing{Landing::Verdict::take, place_} : Landing{};
  }
  void landed(const TcpHeader&) noexcept override { open = false; }

  bool open = false;

 private:
  std::vector<std::byte>& place_;
};

// One rank: its two connections and buffers.
class Rank {
 public:
  Rank(Connection by_hand, Connection by_stream, std::size_t bytes)
      : out_(bytes),
        in_(bytes),
        inbox_(in_),
        hand_(std::move(by_hand.fd)),
        stream_(std::move(by_stream.fd), by_stream.peer, inbox_) {
    set_.add(stream_);
  }

  void exchange(bool streamed, int call) {
    std::memset(out_.data(), call, out_.size());
    if (streamed) {
      by_stream();
    } else {
      exchange_by_hand(hand_.get(), out_, in_);
    }
    // Both ranks count alike, so what came is known.
    const auto wrong = [call](std::byte b) { return b != static_cast<std::byte>(call); };
    if (wrong(in_.front()) || wrong(in_.back())) throw std::runtime_error("wrong bytes");
  }

 private:
  void by_stream() {
    inbox_.open = true;
    TcpHeader header;
    header.length = out_.size();
    stream_.post(header, out_.data());
    const auto over = [this] { return !inbox_.open && stream_.sent() == stream_.posted(); };
    if (set_.run(over, Deadline(60)) != Drive::done) throw std::runtime_error(stream_.why());
  }

  std::vector<std::byte> out_, in_;
  Inbox inbox_;
  Descriptor hand_;
  TcpStream stream_;
  TcpSet set_;
};

// Microseconds of an exchange, by hand or by stream, once for each round.
struct Times {
  std::vector<double> hand, stream;
};
Times measured(Rank& rank, const Row& row, int rounds) {
  Times times;
  for (int round = -1; round < rounds; ++round) {  // the first warms up
    for (const bool streamed : {round % 2 == 0, round % 2 != 0}) {
      const double begin = limits::now_ns();
      for (int call = 0; call < row.calls; ++call) rank.exchange(streamed, call);
      const double us = (limits::now_ns() - begin) / 1000 / row.calls;
      if (round >= 0) (streamed ? times.stream : times.hand).push_back(us);
    }
  }
  return times;
}

Connection accepted(TcpListener& listener) {
  pollfd ready{listener.fd(), POLLIN, 0};
  if (::poll(&ready, 1, 10'000) != 1) throw std::runtime_error("nobody connects");
  Connection connection = listener.accept();
  if (connection.error != 0) throw std::runtime_error("accept");
  return connection;
}

void other_rank(const Endpoint& listener, const Row& row, int rounds) {
  Connection by_hand = tcp_connect(listener, Deadline(10));
  Connection by_stream = tcp_connect(listener, Deadline(10));
  Rank rank(std::move(by_hand), std::move(by_stream), row.bytes);
  measured(rank, row, rounds);
}

void print_row(const Row& row, int rounds, const std::vector<int>& cores) {
  TcpListener listener(Endpoint::parse("127.0.0.1:0"), 4);
  std::fflush(stdout);
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error("fork");
  if (pid == 0) {
    limits::pin(cores[1]);
    other_rank(listener.endpoint(), row, rounds);
    std::_Exit(0);
  }
  Connection by_hand = accepted(listener);
  Connection by_stream = accepted(listener);
  Rank rank(std::move(by_hand), std::move(by_stream), row.bytes);
  Times times = measured(rank, row, rounds);
  std::vector<double> ratios;
  for (std::size_t i = 0; i < times.hand.size(); ++i) {
    ratios.push_back(times.hand[i] / times.stream[i]);
  }
  const double hand = limits::median(times.hand), stream = limits::median(times.stream);
  std::printf(
      "%9zu B  by hand %9.1f us (best %9.1f)  by stream %9.1f us (best %9.1f)  ratio %.3f\n",
      row.bytes, hand, times.hand.front(), stream, times.stream.front(), limits::median(ratios));
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid || status != 0) throw std::runtime_error("the other rank");
}

}  // namespace

void run(int argc, char** argv) {
  const long rounds = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 31;
  if (rounds < 1 || rounds > 10'000) throw std::runtime_error("rounds must be 1 ... 10000");
  // A core for each rank: one that spins beside the other would keep it from its own.
  const std::vector<int> cores = limits::usable_cores();
  if (cores.size() < 2) throw std::runtime_error("two usable cores are needed");
  limits::pin(cores[0]);
  for (const Row& row : kRows) print_row(row, static_cast<int>(rounds), cores);
}

}  // namespace tcp_bench

int main(int argc, char** argv) {
  try {
    tcp_bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "coll_tcp: %s\n", error.what());
    return 1;
  }
}

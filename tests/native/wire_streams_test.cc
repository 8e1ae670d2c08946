// SPDX-License-Identifier: Apache-2.0
// Communicators whose pairs of ranks have several connections for data: the same results, to the
// bit, and the same sentences where something goes wrong.
#include <signal.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "child.h"
#include "groups_of_test.h"
#include "instrumented.h"

namespace {

using namespace coll::testing;

// What COLLECTIVES_STREAMS is as long as this lives.
class Streams {
 public:
  explicit Streams(const char* number) { ::setenv("COLLECTIVES_STREAMS", number, 1); }
  ~Streams() { ::unsetenv("COLLECTIVES_STREAMS"); }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
};

using Values = std::vector<float>;

Values values_of(int rank, std::size_t n) {
  std::minstd_rand random(static_cast<unsigned>(rank + 1));
  Values values(n);
  for (float& value : values) value = static_cast<float>(random()) / 3e6F;
  return values;
}

// What one rank has after collectives of many lengths.
Values results(coll_comm* comm) {
  const int rank = coll_rank(comm), p = coll_ranks(comm);
  Values all;
  const auto keep = [&all](const Values& some) { all.insert(all.end(), some.begin(), some.end()); };
  for (const std::size_t n : {0, 1, 2000, 300'000, 17, 1'000'001}) {
    Values x = values_of(rank, n), out(n);
    ok(coll_allreduce(comm, x.data(), out.data(), n, COLL_FLOAT32, COLL_SUM));
    keep(out);
    ok(coll_broadcast(comm, x.data(), x.data(), n, COLL_FLOAT32, static_cast<int>(n) % p));
    keep(x);
    const std::size_t part = n / static_cast<std::size_t>(p);
    Values parts(part * static_cast<std::size_t>(p));
    ok(coll_alltoall(comm, x.data(), parts.data(), parts.size(), COLL_FLOAT32));
    keep(parts);
  }
  return all;
}

std::vector<Values> results_of_all(int p) {
  std::vector<Values> all(static_cast<std::size_t>(p));
  const auto comms = wired(p);
  run_ranks(p, [&](int rank) {
    const Comm comm(comms[static_cast<std::size_t>(rank)]);
    all[static_cast<std::size_t>(rank)] = results(comm.get());
  });
  return all;
}

TEST(results_are_the_same_with_any_number_of_streams) {
  for (const int p : {2, 3}) {
    const std::vector<Values> plain = results_of_all(p);
    for (const char* number : {"2", "3", "16"}) {
      const Streams streams(number);
      CHECK(results_of_all(p) == plain);
    }
  }
}

// Received in another order than sent; the last of them when their sender has left.
TEST(messages_go_by_several_streams) {
  const Streams streams("3");
  const std::vector<std::size_t> sizes{3, 700'000, 0, 100'000, 65'537, 2'000'000, 5};
  const auto last = static_cast<int>(sizes.size()) - 1;
  const auto size = [&](int tag) { return sizes[static_cast<std::size_t>(tag)]; };
  const auto comms = wired(2);
  run_ranks(2, [&](int rank) {
    const Comm comm(comms[static_cast<std::size_t>(rank)]);
    const auto receive = [&](int tag) {
      Values got(size(tag));
      ok(coll_recv(comm.get(), got.data(), got.size(), COLL_FLOAT32, 0, tag, nullptr, 0));
      CHECK(got == values_of(tag, got.size()));
    };
    for (int tag = 0; rank == 0 && tag <= last; ++tag) {
      const Values x = values_of(tag, size(tag));
      ok(coll_send(comm.get(), x.data(), x.size(), COLL_FLOAT32, 1, tag, 0));
    }
    for (int tag = last - 1; rank == 1 && tag >= 0; --tag) receive(tag);
    if (rank == 1) receive(last);
  });
}

// How many descriptors two ranks open for each other.
int connections_of_two() {
  const auto comms = wired(2);
  const int before = check::descriptors();
  run_ranks(2, [&](int rank) { ok(coll_barrier(comms[static_cast<std::size_t>(rank)])); });
  const int made = check::descriptors() - before;
  for (coll_comm* comm : comms) coll_close(comm);
  return made;
}

TEST(each_stream_is_a_connection) {
  const int plain = connections_of_two();
  const Streams streams("5");
  CHECK(connections_of_two() == plain + 2 * 4);
}

TEST(a_number_of_streams_that_is_none_is_refused) {
  for (const char* number : {"0", "17", "-1", "two", ""}) {
    const Streams streams(number);
    coll_listener* listener = nullptr;
    ok(coll_listener_open("127.0.0.1", &listener));
    std::array<char, 512> text{};
    coll_listener_text(listener, text.data(), text.size());
    const std::array<std::uint8_t, COLL_SECRET_BYTES> secret{};
    const char* door = text.data();
    coll_wire_options options{};
    options.size = sizeof options;
    options.ranks = 1;
    options.secret = secret.data();
    options.doors = &door;
    coll_comm* comm = nullptr;
    CHECK(coll_init_wire(&options, listener, &comm) == COLL_INVALID_ARGUMENT);
    CHECK(says("COLLECTIVES_STREAMS is '" + std::string(number) +
               "'; it must be a whole number from 1 to 16"));
  }
}

TEST(ranks_that_differ_in_their_number_are_told) {
  WiredJob job(2);
  std::vector<coll_comm*> comms;
  for (int rank = 0; rank < 2; ++rank) {
    const Streams streams(rank == 0 ? "2" : "4");
    comms.push_back(job.join(rank));
  }
  std::vector<std::string> told(2);
  run_ranks(2, [&](int rank) {
    const auto i = static_cast<std::size_t>(rank);
    CHECK(coll_barrier(comms[i]) != COLL_OK);
    told[i] = coll_last_error();
    coll_close(comms[i]);
  });
  const std::string all = told[0] + "\n" + told[1];
  CHECK(all.find("rank 0") != std::string::npos && all.find("rank 1") != std::string::npos);
  CHECK(all.find("streams for a pair of ranks, this process ") != std::string::npos);
  CHECK(all.find("set COLLECTIVES_STREAMS to one number for all ranks") != std::string::npos);
}

TEST(groups_have_as_many_streams) {
  const Streams streams("3");
  const auto comms = wired(4);
  run_ranks(4, [&](int rank) {
    const Comm comm(comms[static_cast<std::size_t>(rank)]);
    const Comm half = split(comm.get(), rank % 2);
    CHECK(sum(half.get(), 1) == 2);
    const Values x(500'000, 1);
    Values out(x.size());
    ok(coll_allreduce(half.get(), x.data(), out.data(), x.size(), COLL_FLOAT32, COLL_SUM));
    CHECK(out == Values(x.size(), 2));
  });
}

// Killed in the middle of long calls: whoever lives is told who it was, and goes on without it.
TEST(a_rank_that_is_killed_is_named_and_left_out) {
  constexpr int kRanks = 3, kVictim = 1;
  const Streams streams("4");
  WiredJob job(kRanks);
  std::vector<check::Child> children;
  for (int rank = 0; rank < kRanks; ++rank) {
    children.emplace_back([&, rank] {
      job.close_all_but(rank);
      const Comm comm(job.join(rank));
      const Values x(400'000, 1);
      Values out(x.size());
      coll_status status = COLL_OK;
      for (int call = 0; status == COLL_OK; ++call) {
        if (rank == kVictim && call == 5) ::raise(SIGKILL);
        status = coll_allreduce(comm.get(), x.data(), out.data(), x.size(), COLL_FLOAT32, COLL_SUM);
      }
      CHECK(status == COLL_PEER_LOST && coll_last_error_rank() == kVictim);
      CHECK(says("rank 1 on host1 is lost"));
      coll_comm* made = nullptr;
      ok(coll_shrink(comm.get(), 10, &made));
      const Comm living(made);
      CHECK(sum(living.get(), 1) == kRanks - 1);
    });
  }
  job.close_all_but(-1);
  for (int rank = 0; rank < kRanks; ++rank) {
    CHECK(children[static_cast<std::size_t>(rank)].wait() == (rank == kVictim ? 128 + SIGKILL : 0));
  }
}

// Its last bytes count, whichever of its connections is read last.
TEST(ranks_may_leave_while_others_are_in_their_last_call) {
  const Streams streams("4");
  for (int time = 0; time < 5; ++time) {
    const auto comms = wired(3);
    run_ranks(3, [&](int rank) {
      const Comm comm(comms[static_cast<std::size_t>(rank)]);
      Values x = values_of(0, 700'000);
      const Values right = x;
      if (rank != 0) x.assign(x.size(), 0);
      ok(coll_broadcast(comm.get(), x.data(), x.data(), x.size(), COLL_FLOAT32, 0));
      CHECK(x == right);
    });
  }
}

}  // namespace

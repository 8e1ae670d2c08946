// SPDX-License-Identifier: Apache-2.0
// Communicators of the ranks that live: of threads, of processes, between machines.
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "child.h"
#include "groups_of_test.h"
#include "instrumented.h"
#include "transport/tcp_socket.h"

namespace {

using namespace coll::testing;
using Clock = std::chrono::steady_clock;

Comm shrunk(coll_comm* comm, double timeout = 30) {
  coll_comm* made = nullptr;
  ok(coll_shrink(comm, timeout, &made));
  return Comm(made);
}

std::vector<int> all_but(int p, const std::vector<int>& gone) {
  std::vector<int> ranks;
  for (int r = 0; r < p; ++r) {
    if (std::find(gone.begin(), gone.end(), r) == gone.end()) ranks.push_back(r);
  }
  return ranks;
}

// Ranks as processes of one machine, or of several that share this one.
void in_processes(int p, bool apart, const std::function<void(coll_comm*)>& work,
                  const std::vector<int>& killed) {
  const std::string name = job_of_test();
  WiredJob job(apart ? p : 0);
  std::vector<check::Child> children;
  for (int rank = 0; rank < p; ++rank) {
    children.emplace_back([&, rank] {
      job.close_all_but(rank);
      const Comm comm = apart ? Comm(job.join(rank)) : met(name, rank, p);
      work(comm.get());
    });
  }
  job.close_all_but(-1);
  for (int rank = 0; rank < p; ++rank) {
    const bool dies = std::find(killed.begin(), killed.end(), rank) != killed.end();
    CHECK(children[static_cast<std::size_t>(rank)].wait() == (dies ? 128 + SIGKILL : 0));
  }
}

TEST(all_live_and_shrink) {
  for (const int p : {1, 2, 5}) {
    on_each(p, [p](const Comm& comm) {
      const int rank = coll_rank(comm.get());
      coll_status status = coll_barrier(comm.get());
      if (rank == 0) ok(coll_revoke(comm.get()));
      while (status == COLL_OK) status = coll_barrier(comm.get());
      CHECK(status == COLL_ABORTED && says("rank 0 revoked this communicator"));
      const Comm living = shrunk(comm.get());
      CHECK(gathered(living.get(), rank) == all_but(p, {}));
      coll_comm* made = nullptr;
      CHECK(coll_shrink(comm.get(), 1, &made) == COLL_INVALID_ARGUMENT && made == nullptr);
      CHECK(says("was shrunk before"));
      // What came of it can do all that its parent could, and shrink again.
      coll_comm* beside = nullptr;
      ok(coll_dup(living.get(), &beside));
      const Comm same(beside);
      const Comm half = split(living.get(), rank % 2);
      CHECK(sum(half.get(), 1) == coll_ranks(half.get()));
      // Who shrinks revokes: not before all are through with split().
      ok(coll_barrier(same.get()));
      const Comm again = shrunk(living.get());
      CHECK(sum(again.get(), 1) == p);
    });
  }
}

TEST(who_has_closed_is_left_out) {
  on_each(4, [](Comm comm) {
    const int rank = coll_rank(comm.get());
    ok(coll_barrier(comm.get()));
    if (rank == 2) return comm.reset();
    coll_status status = COLL_OK;
    while (status == COLL_OK) status = coll_barrier(comm.get());
    CHECK(status == COLL_PEER_LOST);
    const Comm living = shrunk(comm.get());
    CHECK(gathered(living.get(), rank) == all_but(4, {2}));
  });
}

// The kernel gives the port of who has closed to the next that asks for one.
coll::TcpListener take_over(const std::string& doors) {
  return {coll::Endpoint::parse(doors.substr(doors.rfind(' ') + 1)), 16};
}

TEST(who_has_closed_is_left_out_though_another_has_its_door) {
  // Of all ranks, and of rank 0 alone, was it known.
  for (const bool known_to_all : {true, false}) {
    WiredJob job(4);
    std::vector<coll_comm*> apart;
    for (int rank = 0; rank < 4; ++rank) apart.push_back(job.join(rank));
    std::optional<coll::TcpListener> stranger;
    std::atomic<bool> taken{false};
    run_ranks(4, [&](int rank) {
      Comm comm(apart[static_cast<std::size_t>(rank)]);
      char word = 'x';
      if (known_to_all) ok(coll_barrier(comm.get()));
      if (rank == 0) ok(coll_send(comm.get(), &word, 1, COLL_UINT8, 2, 0, 30));
      if (rank == 2) {
        ok(coll_recv(comm.get(), &word, 1, COLL_UINT8, 0, 0, nullptr, 30));
        comm.reset();
        stranger.emplace(take_over(job.doors()[2]));
        taken = true;
        return;
      }
      while (!taken) check::nap(1);
      const auto start = Clock::now();
      const Comm living = shrunk(comm.get());
      CHECK(Clock::now() - start < std::chrono::seconds(10));
      CHECK(gathered(living.get(), rank) == all_but(4, {2}));
    });
  }
}

TEST(who_does_not_come_is_waited_for_and_named) {
  on_each(3, [](const Comm& comm) {
    ok(coll_revoke(comm.get()));
    if (coll_rank(comm.get()) == 1) return check::nap(500);
    coll_comm* made = nullptr;
    CHECK(coll_shrink(comm.get(), 0.2, &made) == COLL_TIMEOUT && made == nullptr);
    CHECK(says("gave up after 0.2 s: rank 1 did not come to shrink") &&
          coll_last_error_rank() == 1);
  });
}

// Where a call fails, its door for data is shut, and who comes later takes it for lost.
TEST(who_failed_before_it_was_connected_is_no_loss) {
  std::atomic<int> failures{0};
  const std::vector<coll_comm*> apart = wired(3);
  run_ranks(3, [&](int rank) {
    Comm comm(apart[static_cast<std::size_t>(rank)]);
    // What came of it fails in the same way.
    for (int turn = 0; turn < 2; ++turn) {
      if (rank == 0) {
        ok(turn == 0 ? coll_revoke(comm.get()) : coll_abort(comm.get(), "enough"));
        ++failures;
      }
      while (failures <= turn) check::nap(1);
      CHECK(coll_barrier(comm.get()) == (rank == 0 ? COLL_ABORTED : COLL_PEER_LOST));
      comm = shrunk(comm.get());
      CHECK(coll_ranks(comm.get()) == 3);
    }
    CHECK(gathered(comm.get(), rank) == all_but(3, {}));
  });
}

// Rank 1 seeks rank 0 where nobody listens, and tells all that it is lost: rank 0 as well.
TEST(who_is_taken_for_lost_knows_that_it_lives) {
  WiredJob job(3);
  std::vector<std::string> astray = job.doors();
  astray[0] = "127.0.0.1:1" + astray[0].substr(astray[0].find(' '));
  std::vector<coll_comm*> apart;
  for (int rank = 0; rank < 3; ++rank) {
    apart.push_back(rank == 1 ? job.join(rank, astray) : job.join(rank));
  }
  run_ranks(3, [&](int rank) {
    const Comm comm(apart[static_cast<std::size_t>(rank)]);
    CHECK(coll_barrier(comm.get()) == COLL_PEER_LOST && coll_last_error_rank() == 0);
    const Comm living = shrunk(comm.get());
    CHECK(gathered(living.get(), rank) == all_but(3, {}));
  });
}

// A door that leads to another one, after a while: for one connection.
void lead_on(int listener, const std::string& to, int milliseconds) {
  const coll::Descriptor from(::accept(listener, nullptr, nullptr));
  check::nap(milliseconds);
  const coll::Connection there = coll::tcp_begin_connect(coll::Endpoint::parse(to));
  std::array<pollfd, 2> ends{{{from.get(), POLLIN, 0}, {there.fd.get(), POLLIN, 0}}};
  while (::poll(ends.data(), ends.size(), -1) > 0) {
    for (std::size_t i = 0; i < 2; ++i) {
      if (ends[i].revents == 0) continue;
      std::array<char, 4096> bytes;
      const ssize_t n = ::recv(ends[i].fd, bytes.data(), bytes.size(), 0);
      if (n <= 0) return;
      const std::size_t came = static_cast<std::size_t>(n);
      if (::send(ends[1 - i].fd, bytes.data(), came, MSG_NOSIGNAL) != n) return;
    }
  }
}

// Rank 0 learns from rank 2 what was decided, long before it hears where rank 1 is.
TEST(who_is_late_to_say_where_it_is_is_waited_for) {
  WiredJob job(3);
  coll::TcpListener detour(coll::Endpoint::parse("127.0.0.1:0"), 4);
  std::vector<std::string> doors = job.doors();
  const std::size_t last = doors[0].rfind(' ') + 1;  // what survivors say
  const std::string true_door = doors[0].substr(last);
  doors[0] = doors[0].substr(0, last) + detour.endpoint().text();
  std::vector<coll_comm*> apart;
  for (int rank = 0; rank < 3; ++rank) {
    apart.push_back(rank == 1 ? job.join(rank, doors) : job.join(rank));
  }
  pollfd knocks{detour.fd(), POLLIN, 0};
  std::thread way([&] {
    CHECK(::poll(&knocks, 1, 10'000) == 1);
    lead_on(detour.fd(), true_door, 1300);
  });
  run_ranks(3, [&](int rank) {
    const Comm comm(apart[static_cast<std::size_t>(rank)]);
    const Comm living = shrunk(comm.get());
    CHECK(gathered(living.get(), rank) == all_but(3, {}));
  });
  way.join();
}

TEST(arguments_that_cannot_be) {
  on_each(1, [](const Comm& comm) {
    coll_comm* made = nullptr;
    CHECK(coll_shrink(comm.get(), 1, nullptr) == COLL_INVALID_ARGUMENT);
    CHECK(coll_shrink(comm.get(), -1, &made) == COLL_INVALID_ARGUMENT && says("0 seconds or more"));
    CHECK(coll_shrink(nullptr, 1, &made) == COLL_CLOSED);
    CHECK(coll_revoke(nullptr) == COLL_CLOSED);
    ok(coll_barrier(comm.get()));
  });
}

void go_on_without(const std::vector<int>& killed, bool apart) {
  constexpr int kRanks = 5;
  in_processes(
      kRanks, apart,
      [&](coll_comm* comm) {
        const int rank = coll_rank(comm);
        ok(coll_barrier(comm));
        if (std::find(killed.begin(), killed.end(), rank) != killed.end()) {
          check::nap(20);
          ::kill(::getpid(), SIGKILL);
        }
        coll_status status = COLL_OK;
        while (status == COLL_OK) status = coll_barrier(comm);
        const auto start = Clock::now();
        const Comm living = shrunk(comm);
        CHECK(Clock::now() - start < check::promised(std::chrono::seconds(2)));
        CHECK(gathered(living.get(), rank) == all_but(kRanks, killed));
        CHECK(sum(living.get(), 1) == kRanks - static_cast<int>(killed.size()));
        ok(coll_barrier(living.get()));
      },
      killed);
}

TEST(the_living_go_on_without_the_killed) {
  for (const bool apart : {false, true}) {
    for (const auto& killed : {std::vector<int>{0}, {2}, {0, 3}}) go_on_without(killed, apart);
  }
}

// The lowest of the living, which decides on one machine, dies in the midst of it.
TEST(a_death_while_others_shrink) {
  for (const bool apart : {false, true}) {
    for (const int microseconds : {0, 1000}) {
      in_processes(4, apart,
                   [&](coll_comm* comm) {
                     const int rank = coll_rank(comm);
                     ok(coll_barrier(comm));
                     if (rank == 3) ::kill(::getpid(), SIGKILL);
                     coll_status status = COLL_OK;
                     while (status == COLL_OK) status = coll_barrier(comm);
                     if (rank == 0) {
                       std::thread([&] {
                         ::usleep(static_cast<useconds_t>(microseconds));
                         ::kill(::getpid(), SIGKILL);
                       }).detach();
                     }
                     Comm living = shrunk(comm);
                     if (rank == 0) check::nap(1000);
                     // It may still have been counted among the living: then they find it dead.
                     if (coll_ranks(living.get()) == 3) {
                       do status = coll_barrier(living.get());
                       while (status == COLL_OK);
                       CHECK(status == COLL_PEER_LOST);
                       living = shrunk(living.get());
                     }
                     CHECK(gathered(living.get(), rank) == all_but(4, {0, 3}));
                     ok(coll_barrier(living.get()));
                   },
                   {0, 3});
    }
  }
}

}  // namespace

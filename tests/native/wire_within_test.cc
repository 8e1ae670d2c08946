// SPDX-License-Identifier: Apache-2.0
// Groups within a host of a job on several: they share its memory where all of their ranks can.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "child.h"
#include "groups_of_test.h"
#include "instrumented.h"
#include "transport/faults.h"

namespace {

using namespace coll;
using namespace coll::testing;
using Clock = std::chrono::steady_clock;

std::string transport(const Comm& comm) { return coll_transport(comm.get()); }

// Threads, two of which say at a time that they are on one host.
void on_hosts(int p, const std::function<void(Comm)>& work) {
  const std::vector<coll_comm*> comms = wired(p, {.per_host = 2});
  run_ranks(p, [&](int rank) { work(Comm(comms[static_cast<std::size_t>(rank)])); });
}

// The same as processes, which end as these numbers say.
void in_processes(int p, const std::function<void(Comm)>& work, const std::vector<int>& ends) {
  WiredJob job(p, {.per_host = 2});
  std::vector<check::Child> children;
  for (int rank = 0; rank < p; ++rank) {
    children.emplace_back([&, rank] {
      job.close_all_but(rank);
      work(Comm(job.join(rank)));
    });
  }
  job.close_all_but(-1);
  for (int rank = 0; rank < p; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    CHECK(children[r].wait() == ends[r]);
  }
}

// Some collectives and messages among all ranks of a group.
void check_use(coll_comm* comm) {
  const int rank = coll_rank(comm), p = coll_ranks(comm);
  std::vector<int> ranks;
  for (int r = 0; r < p; ++r) ranks.push_back(r);
  CHECK(gathered(comm, rank) == ranks);
  CHECK(2 * sum(comm, rank + 1) == p * (p + 1));
  std::vector<double> x(300'000, rank == p - 1 ? 7 : 0);
  ok(coll_broadcast(comm, x.data(), x.data(), x.size(), COLL_FLOAT64, p - 1));
  CHECK(x.front() == 7 && x.back() == 7);
  ok(coll_allreduce(comm, x.data(), x.data(), x.size(), COLL_FLOAT64, COLL_SUM));
  CHECK(x.front() == 7 * p && x.back() == 7 * p);
  if (p == 1) return;
  int from = -1;
  ok(coll_sendrecv(comm, &rank, 1, COLL_INT32, (rank + 1) % p, 5, &from, 1, COLL_INT32,
                   (rank + p - 1) % p, 5, nullptr, 0));
  CHECK(from == (rank + p - 1) % p);
}

TEST(ranks_of_one_host_share_memory) {
  on_hosts(4, [](const Comm& world) {
    const int rank = coll_rank(world.get());
    const Comm within = split(world.get(), rank / 2), across = split(world.get(), rank % 2);
    CHECK(transport(within) == "memory" && transport(across) == "tcp");
    CHECK(coll_ranks(within.get()) == 2 && coll_rank(within.get()) == rank % 2);
    check_use(within.get());
    check_use(across.get());
    check_use(world.get());
  });
}

// One thread is all ranks: none of them waits for another within a step.
TEST(they_form_beside_their_callers) {
  constexpr int p = 4;
  std::vector<Comm> comms;
  for (coll_comm* comm : wired(p, {.interruptible = true, .per_host = 2})) comms.emplace_back(comm);
  std::vector<coll_comm*> made(p);
  std::vector<coll_status> status;
  for (int r = 0; r < p; ++r) {
    const auto i = static_cast<std::size_t>(r);
    status.push_back(coll_split(comms[i].get(), r / 2, 0, &made[i]));
  }
  const auto end = Clock::now() + std::chrono::seconds(20);
  for (std::size_t left = p; left > 0;) {
    left = 0;
    for (std::size_t r = 0; r < p; ++r) {
      if (status[r] == COLL_IN_PROGRESS) status[r] = coll_resume(comms[r].get());
      if (status[r] == COLL_IN_PROGRESS) ++left;
      CHECK(status[r] == COLL_OK || status[r] == COLL_IN_PROGRESS);
    }
    CHECK(Clock::now() < end);
  }
  for (std::size_t r = 0; r < p; ++r) {
    const Comm within(made[r]);
    CHECK(transport(within) == "memory" && coll_ranks(within.get()) == 2);
  }
}

// One rank in a group of its own, one group within a host, one over two, and a rank in none.
TEST(groups_of_one_call_may_differ) {
  on_hosts(7, [](const Comm& world) {
    const int rank = coll_rank(world.get());
    const std::vector<int> colors = {0, 1, 2, 2, 3, -1, 3};
    const Comm group = split(world.get(), colors[static_cast<std::size_t>(rank)], -rank);
    CHECK((group == nullptr) == (rank == 5));
    if (!group) return;
    CHECK(transport(group) == (rank == 4 || rank == 6 ? "tcp" : "memory"));
    check_use(group.get());
    const Comm again = dup(group.get());
    CHECK(transport(again) == transport(group));
    check_use(again.get());
  });
}

TEST(groups_of_groups) {
  on_hosts(6, [](const Comm& world) {
    const int rank = coll_rank(world.get());
    const Comm four = subgroup(world.get(), {5, 3, 2, 4});
    if (!four) return;
    CHECK(transport(four) == "tcp");
    const Comm pair = split(four.get(), rank / 2);
    CHECK(transport(pair) == "memory");
    CHECK(pair->communicator->world_rank() == rank);
    check_use(pair.get());
    const Comm one = split(pair.get(), rank);
    CHECK(transport(one) == "memory" && one->communicator->world_rank() == rank);
    check_use(one.get());
  });
}

TEST(who_leaves_a_group_is_named_by_its_rank_among_all_too) {
  on_hosts(4, [](const Comm& world) {
    const int rank = coll_rank(world.get());
    Comm across = split(world.get(), rank % 2);
    if (rank == 3) across.reset();
    if (rank != 1) return;
    double x = 1;
    CHECK(coll_allreduce(across.get(), &x, &x, 1, COLL_FLOAT64, COLL_SUM) == COLL_PEER_LOST);
    CHECK(says("rank 1 on host1 (rank 3 of the world)"));
  });
}

TEST(they_are_closed_in_any_order) {
  on_hosts(4, [](Comm world) {
    const int rank = coll_rank(world.get());
    Comm first = split(world.get(), rank / 2), second = split(world.get(), rank / 2);
    const Comm third = dup(first.get());
    if (rank == 0) {
      second.reset();
      world.reset();
    } else {
      world.reset();
      second.reset();
    }
    check_use(first.get());
    first.reset();
    check_use(third.get());
  });
}

TEST(an_abort_of_parent_or_group_does_not_reach_the_other) {
  std::atomic<int> used{0};
  on_hosts(4, [&](const Comm& world) {
    const int rank = coll_rank(world.get());
    const Comm within = split(world.get(), rank / 2), other = split(world.get(), rank / 2);
    if (rank == 0) ok(coll_abort(other.get(), "enough"));
    if (rank < 2) CHECK(coll_barrier(other.get()) == COLL_ABORTED);
    check_use(world.get());
    for (++used; used < 4;) check::nap(1);
    if (rank == 3) ok(coll_abort(world.get(), "enough"));
    CHECK(coll_barrier(world.get()) != COLL_OK);
    check_use(within.get());
  });
}

TEST(they_are_revoked_and_shrink) {
  on_hosts(4, [](const Comm& world) {
    const Comm within = split(world.get(), coll_rank(world.get()) / 2);
    ok(coll_revoke(within.get()));
    CHECK(coll_barrier(within.get()) == COLL_ABORTED);
    coll_comm* made = nullptr;
    ok(coll_shrink(within.get(), 10, &made));
    const Comm living(made);
    CHECK(transport(living) == "memory" && coll_ranks(living.get()) == 2);
    check_use(living.get());
    check_use(world.get());
  });
}

TEST(a_killed_rank_is_named_within_a_second) {
  in_processes(4,
               [](Comm world) {
                 const int rank = coll_rank(world.get());
                 const Comm within = split(world.get(), rank / 2);
                 check_use(within.get());
                 ok(coll_barrier(world.get()));
                 if (rank == 3) ::kill(::getpid(), SIGKILL);
                 if (rank != 2) return;
                 const auto since = Clock::now();
                 CHECK(coll_barrier(within.get()) == COLL_PEER_LOST && coll_last_error_rank() == 1);
                 CHECK(Clock::now() - since < check::promised(std::chrono::seconds(1)));
                 if (!says("rank 3 of the world")) check::fail(coll_last_error());
                 coll_comm* made = nullptr;
                 ok(coll_shrink(within.get(), 10, &made));
                 const Comm living(made);
                 CHECK(coll_ranks(living.get()) == 1 && sum(living.get(), 3) == 3);
               },
               {0, 0, 0, 128 + SIGKILL});
}

TEST(what_is_left_on_one_host_shares_memory_in_its_groups) {
  in_processes(3,
               [](Comm world) {
                 ok(coll_barrier(world.get()));
                 if (coll_rank(world.get()) == 2) ::kill(::getpid(), SIGKILL);
                 CHECK(coll_barrier(world.get()) == COLL_PEER_LOST);
                 coll_comm* made = nullptr;
                 ok(coll_shrink(world.get(), 10, &made));
                 const Comm living(made);
                 CHECK(transport(living) == "tcp" && coll_ranks(living.get()) == 2);
                 const Comm within = dup(living.get());
                 CHECK(transport(within) == "memory");
                 check_use(within.get());
               },
               {0, 0, 128 + SIGKILL});
}

// On one rank of the first host a step fails; the second host has nothing to do with it.
// Connections that are made at this moment need none of these calls, or do without.
TEST(where_one_rank_cannot_the_group_goes_by_messages) {
  struct Refusal {
    int rank;
    faults::Fault fault;
  };
  for (const Refusal& refusal : {Refusal{0, {SystemCall::memfd_create, 1, EACCES, true}},
                                 Refusal{0, {SystemCall::connect, 1, EACCES, true}},
                                 Refusal{1, {SystemCall::bind, 1, EACCES, false}},
                                 Refusal{1, {SystemCall::fcntl, 1, EACCES, true}},
                                 Refusal{1, {SystemCall::mmap, 1, EACCES, true}}}) {
    in_processes(4,
                 [&](Comm world) {
                   const int rank = coll_rank(world.get());
                   const Comm before = split(world.get(), rank / 2);  // all connections are made
                   CHECK(transport(before) == "memory");
                   if (rank == refusal.rank) faults::arm(refusal.fault);
                   const Comm within = split(world.get(), rank / 2);
                   if (rank == refusal.rank) CHECK(faults::fired() > 0);
                   faults::clear();
                   CHECK(transport(within) == (rank < 2 ? "tcp" : "memory"));
                   check_use(within.get());
                   check_use(world.get());
                   const Comm again = split(within.get(), 0);  // it is tried anew
                   CHECK(transport(again) == "memory");
                   check_use(again.get());
                 },
                 {0, 0, 0, 0});
  }
}

// Whatever fails on one rank at whatever moment: both ranks get the same kind of group, or errors.
TEST(any_call_may_fail) {
  for (std::uint64_t nth = 1; nth <= 44; ++nth) {
    in_processes(
        2,
        [&](Comm world) {
          const int rank = coll_rank(world.get());
          ok(coll_barrier(world.get()));
          if (rank == static_cast<int>(nth % 2)) {
            faults::arm({SystemCall::any, (nth + 1) / 2, EACCES, false});
          }
          coll_comm* made = nullptr;
          const bool formed = coll_split(world.get(), 0, 0, &made) == COLL_OK;
          faults::clear();
          const Comm within(made);
          CHECK(formed == (within != nullptr));
          int shares = formed ? transport(within) == "memory" : 0, all = -shares;
          if (!formed) return;
          if (coll_allreduce(within.get(), &shares, &all, 1, COLL_INT32, COLL_SUM) != COLL_OK) {
            return;  // the other one has none
          }
          CHECK(all == 2 * shares);
          check_use(within.get());
        },
        {0, 0});
  }
}

// A rank dies at some moment of the forming, or soon after it.
TEST(a_death_while_they_form_is_found) {
  for (int microseconds = 50; microseconds < 3000; microseconds += 300) {
    in_processes(2,
                 [&](Comm world) {
                   ok(coll_barrier(world.get()));
                   std::thread killer;
                   if (coll_rank(world.get()) == 1) {
                     killer = std::thread([&] {
                       ::usleep(static_cast<useconds_t>(microseconds));
                       ::kill(::getpid(), SIGKILL);
                     });
                   }
                   const auto since = Clock::now();
                   coll_comm* made = nullptr;
                   coll_status status = coll_split(world.get(), 0, 0, &made);
                   const Comm within(made);
                   while (status == COLL_OK) status = coll_barrier(within.get());
                   CHECK(status == COLL_PEER_LOST && coll_last_error_rank() == 1);
                   CHECK(Clock::now() - since < check::promised(std::chrono::seconds(2)));
                 },
                 {0, 128 + SIGKILL});
  }
}

TEST(nothing_stays_open) {
  in_processes(2,
               [](Comm world) {
                 const auto one = [&](SystemCall call) {
                   if (call != SystemCall::any) faults::arm({call, 1, EACCES, false});
                   const Comm within = split(world.get(), 0);
                   faults::clear();
                   CHECK(transport(within) == (call == SystemCall::any ? "memory" : "tcp"));
                   ok(coll_barrier(within.get()));
                   ok(coll_barrier(world.get()));
                 };
                 one(SystemCall::any);
                 const int descriptors = check::descriptors();
                 one(SystemCall::any);
                 one(SystemCall::fallocate);
                 ok(coll_barrier(world.get()));
                 CHECK(check::descriptors() == descriptors);
               },
               {0, 0});
}

}  // namespace

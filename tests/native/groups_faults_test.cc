// SPDX-License-Identifier: Apache-2.0
// Groups that cannot be formed, or lose a rank: all ranks are told the same, the group that they
// came from works on where it can, and nothing hangs.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "child.h"
#include "groups_of_test.h"
#include "instrumented.h"
#include "transport/faults.h"

namespace {

using namespace coll;
using namespace coll::testing;
using Clock = std::chrono::steady_clock;

// ---- what is refused ---------------------------------------------------------------------------

TEST(arguments_that_cannot_be) {
  on_each(4, [](const Comm& comm) {
    coll_comm* made = comm.get();
    const auto refused = [&](coll_status status, const std::string& why) {
      CHECK(status == COLL_INVALID_ARGUMENT && made == nullptr);
      if (!says(why)) check::fail(coll_last_error());
      made = comm.get();
    };
    const std::array<std::int32_t, 2> twice = {2, 2}, beyond = {1, 4}, below = {-1, 0},
                                      wide = {2, 3}, none = {0, 4}, huge = {1 << 30, 1 << 30};
    refused(coll_split(comm.get(), -2, 0, &made), "a color is 0 or more, or COLL_NO_COLOR");
    refused(coll_subgroup(comm.get(), twice.data(), 2, &made), "rank 2 is named twice");
    refused(coll_subgroup(comm.get(), beyond.data(), 2, &made), "4 is none of the ranks 0 to 3");
    refused(coll_subgroup(comm.get(), below.data(), 2, &made), "-1 is none of the ranks");
    refused(coll_subgroup(comm.get(), nullptr, 2, &made), "null pointer");
    refused(coll_subgroup(comm.get(), beyond.data(), -1, &made), "null pointer");
    const auto axis = [&](const auto& shape, int axes, int at) {
      return coll_axis(comm.get(), shape.data(), axes, at, nullptr, &made);
    };
    refused(axis(wide, 2, 0), "a mesh 2 x 3 is not one of 4 ranks");
    refused(axis(huge, 2, 0), "is not one of 4 ranks");
    refused(axis(none, 2, 0), "an axis of a mesh 0 x 4 has no ranks");
    refused(axis(twice, 2, 2), "2 is none of the axes 0 to 1");
    refused(axis(twice, 2, -1), "-1 is none of the axes");
    refused(axis(twice, 0, 0), "a shape has 1 to 64 axes");
    refused(coll_axis(comm.get(), nullptr, 2, 0, nullptr, &made), "a shape has");
    CHECK(coll_dup(comm.get(), nullptr) == COLL_INVALID_ARGUMENT);
    CHECK(coll_split(nullptr, 0, 0, &made) == COLL_CLOSED && made == nullptr);
    CHECK(coll_subgroup(nullptr, twice.data(), 1, &made) == COLL_CLOSED);
    CHECK(sum(comm.get(), 1) == 4);
    CHECK(coll_sequence(comm.get()) == 1);
  });
}

// ---- what differs between ranks
// ------------------------------------------------------------------

// Rank 1 makes another call than rank 0: both are told the same sentence.
void mismatch(const std::function<coll_status(coll_comm*, bool, coll_comm**)>& call,
              const std::string& sentence) {
  on_each(2, [&](const Comm& comm) {
    coll_comm* made = nullptr;
    CHECK(call(comm.get(), coll_rank(comm.get()) == 1, &made) == COLL_MISMATCH);
    CHECK(made == nullptr);
    if (!says(sentence)) check::fail(coll_last_error());
    CHECK(coll_barrier(comm.get()) == COLL_MISMATCH);
  });
}

TEST(ranks_that_do_not_ask_for_the_same) {
  using Ranks = std::array<std::int32_t, 2>;
  mismatch(
      [](coll_comm* comm, bool odd, coll_comm** made) {
        return odd ? coll_dup(comm, made) : coll_split(comm, 0, 0, made);
      },
      " #1: the ranks do not make the same call: rank 0 calls split, rank 1 calls dup");
  mismatch(
      [](coll_comm* comm, bool odd, coll_comm** made) {
        std::vector<char> bytes(1000);
        return odd ? coll_allgather(comm, bytes.data(), bytes.data() + 160, 160, COLL_UINT8)
                   : coll_split(comm, 0, 0, made);
      },
      "rank 0 calls split, rank 1 calls allgather");
  mismatch(
      [](coll_comm* comm, bool odd, coll_comm** made) {
        const Ranks ranks = {odd ? 1 : 0, odd ? 0 : 1};
        return coll_subgroup(comm, ranks.data(), 2, made);
      },
      "subgroup #1: the ranks do not ask for the same: rank 0 for ranks 0, 1, rank 1 for ranks "
      "1, 0");
  mismatch(
      [](coll_comm* comm, bool odd, coll_comm** made) {
        const Ranks shape = {odd ? 1 : 2, odd ? 2 : 1};
        return coll_axis(comm, shape.data(), 2, 0, nullptr, made);
      },
      "rank 0 for axis 0 of a mesh 2 x 1, rank 1 for axis 0 of a mesh 1 x 2");
  mismatch(
      [](coll_comm* comm, bool odd, coll_comm** made) {
        const Ranks shape = {2, 1};
        return coll_axis(comm, shape.data(), 2, 0, odd ? "tp" : "dp", made);
      },
      "rank 0 for axis 0 (dp) of a mesh 2 x 1, rank 1 for axis 0 (tp)");
}

TEST(a_mismatch_in_a_group_is_one_of_that_group) {
  on_each(4, [](const Comm& comm) {
    const int rank = coll_rank(comm.get());
    const Comm half = split(comm.get(), rank / 2);
    if (rank >= 2) {
      float x[8] = {};
      const coll_op op = rank == 2 ? COLL_SUM : COLL_MAX;
      CHECK(coll_allreduce(half.get(), x, x, 8, COLL_FLOAT32, op) == COLL_MISMATCH);
      const bool named = says("rank 0 (rank 2 of the world) calls allreduce of 8 float32 (sum") &&
                         says("rank 1 (rank 3 of the world) calls allreduce of 8 float32 (max");
      if (!named) check::fail(coll_last_error());
    } else {
      CHECK(sum(half.get(), 1) == 2);
    }
    CHECK(sum(comm.get(), 1) == 4);
  });
}

// ---- blocked, and looking up
// ---------------------------------------------------------------------

TEST(forming_a_group_can_be_interrupted_and_resumed) {
  coll_options options = options_of(0, 2);
  options.interruptible = 1;
  std::array<coll_comm*, 2> comms{};
  ok(coll_local(&options, comms.data()));
  std::atomic<int> looked_up{0};
  run_ranks(2, [&](int rank) {
    const Comm comm(comms[static_cast<std::size_t>(rank)]);
    if (rank == 1) {
      while (looked_up.load() < 3) check::nap(1);
    }
    coll_comm* made = nullptr;
    coll_status status = coll_split(comm.get(), 0, -rank, &made);
    while (status == COLL_IN_PROGRESS) {
      CHECK(made == nullptr);
      coll_comm* second = nullptr;
      CHECK(coll_dup(comm.get(), &second) == COLL_INVALID_ARGUMENT);
      CHECK(says("still in progress"));
      looked_up.fetch_add(1);
      status = coll_resume(comm.get());
    }
    ok(status);
    const Comm group(made);
    CHECK(coll_rank(group.get()) == 1 - rank);
    double x = 1;
    status = coll_allreduce(group.get(), &x, &x, 1, COLL_FLOAT64, COLL_SUM);
    while (status == COLL_IN_PROGRESS) status = coll_resume(group.get());
    CHECK(status == COLL_OK && x == 2);
    CHECK(coll_resume(comm.get()) == COLL_INVALID_ARGUMENT);
  });
}

TEST(closing_what_forms_a_group_leaves_nothing) {
  coll_options options = options_of(0, 2);
  options.interruptible = 1;
  std::array<coll_comm*, 2> comms{};
  ok(coll_local(&options, comms.data()));
  coll_comm* made = nullptr;
  CHECK(coll_dup(comms[0], &made) == COLL_IN_PROGRESS);
  ok(coll_close(comms[0]));
  CHECK(coll_dup(comms[1], &made) == COLL_PEER_LOST && made == nullptr);
  ok(coll_close(comms[1]));
}

// ---- system calls that fail
// ----------------------------------------------------------------------

// Splits under a fault that hits some rank. Returns whether it came to be felt. Whatever happens,
// all ranks are told the same, and their group works on.
bool felt(const faults::Fault& fault, const std::vector<Comm>& comms) {
  const int p = static_cast<int>(comms.size());
  std::vector<std::string> told(comms.size());
  faults::arm(fault);
  run_ranks(p, [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    coll_comm* made = nullptr;
    if (coll_split(comms[index].get(), rank % 2, 0, &made) != COLL_OK) {
      told[index] = coll_last_error();
      CHECK(made == nullptr && coll_last_error_rank() >= 0);
      CHECK(says("could not enter its new group: "));
      return;
    }
    const Comm group(made);
    CHECK(sum(group.get(), 1) == coll_ranks(group.get()));
  });
  const bool fired = faults::fired() > 0;
  faults::clear();
  CHECK(std::set<std::string>(told.begin(), told.end()).size() == 1);
  run_ranks(p, [&](int rank) { CHECK(sum(comms[static_cast<std::size_t>(rank)].get(), 1) == p); });
  return fired;
}

std::vector<Comm> job(int p) {
  std::vector<Comm> comms(static_cast<std::size_t>(p));
  run_ranks(p, [&](int rank) {
    comms[static_cast<std::size_t>(rank)] = met(job_of_test(), rank, p);
    CHECK(sum(comms[static_cast<std::size_t>(rank)].get(), 1) == p);
  });
  return comms;
}

TEST(the_nth_system_call_fails) {
  const std::vector<Comm> comms = job(3);
  std::uint64_t n = 1;
  while (felt({coll::SystemCall::any, n, EIO, false}, comms)) CHECK(++n < 2000);
  CHECK(n > 20);
}

TEST(no_memory_for_a_group_leaves_nothing) {
  const std::vector<Comm> comms = job(3);
  for (const auto call :
       {coll::SystemCall::mmap, coll::SystemCall::madvise, coll::SystemCall::getrandom}) {
    for (std::uint64_t n = 1; felt({call, n, ENOMEM, false}, comms);) CHECK(++n < 100);
    CHECK(arena(comms[0].get()).ranges() == 1);
  }
  const int maps = mappings(), descriptors = check::descriptors();
  for (int i = 0; i < 20; ++i) CHECK(felt({coll::SystemCall::mmap, 1, ENOMEM, true}, comms));
  CHECK(mappings() < maps + 10 && check::descriptors() == descriptors);
}

TEST(a_program_that_closes_descriptors_is_told) {
  check::Child child([] {
    const std::vector<Comm> comms = job(2);
    for (int fd = 3; fd < 100; ++fd) ::close(fd);
    const int other = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    run_ranks(2, [&](int rank) {
      coll_comm* made = nullptr;
      const auto index = static_cast<std::size_t>(rank);
      CHECK(coll_dup(comms[index].get(), &made) == COLL_SYSTEM);
      CHECK(says("shared memory was closed by the program"));
      CHECK(sum(comms[index].get(), 1) == 2);
    });
    CHECK(::fcntl(other, F_GETFD) >= 0);
  });
  CHECK(child.wait() == 0);
}

// ---- ranks that die
// ------------------------------------------------------------------------------

void die() { ::kill(::getpid(), SIGKILL); }

// Runs `work` in p processes, which form a job; `victim` dies in it.
void with_dead(int p, int victim, const std::function<void(coll_comm*)>& work) {
  const std::string name = job_of_test();
  std::vector<check::Child> children;
  for (int rank = 0; rank < p; ++rank) {
    children.emplace_back([&, rank] {
      const Comm comm = met(name, rank, p);
      work(comm.get());
    });
  }
  for (int rank = 0; rank < p; ++rank) {
    CHECK(children[static_cast<std::size_t>(rank)].wait() == (rank == victim ? 128 + SIGKILL : 0));
  }
}

TEST(a_dead_rank_is_named_in_every_group_that_it_was_in) {
  with_dead(5, 3, [](coll_comm* comm) {
    const int rank = coll_rank(comm);
    const Comm odd = split(comm, rank % 2, -rank), upper = split(comm, rank / 3), all = dup(comm);
    const Comm others = split(comm, rank == 3 ? -1 : 0), nested = split(upper.get(), 0, -rank);
    CHECK(sum(comm, 1) == 5);
    if (rank == 3) die();
    const auto start = Clock::now();
    const auto lost = [](const Comm& group, int dead, const std::string& who) {
      CHECK(coll_barrier(group.get()) == COLL_PEER_LOST);
      CHECK(coll_last_error_rank() == dead);
      if (!says("rank " + std::to_string(dead) + " (pid ") || !says(who)) {
        check::fail(coll_last_error());
      }
    };
    if (rank == 1) lost(odd, 0, ", rank 3 of the world) died");
    if (rank == 4) lost(upper, 0, ", rank 3 of the world) died");
    if (rank == 4) lost(nested, 1, ", rank 3 of the world) died");
    lost(all, 3, ") died");
    CHECK(Clock::now() - start < check::promised(std::chrono::seconds(1)));
    if (rank % 2 == 0) CHECK(sum(odd.get(), 1) == 3);
    CHECK(sum(others.get(), 1) == 4);
    const Comm more = dup(others.get());  // the living form groups still
    CHECK(sum(more.get(), 1) == 4);
    CHECK(coll_barrier(comm) == COLL_PEER_LOST);
  });
}

TEST(the_memory_of_the_dead_is_given_back_by_the_last_of_the_living) {
  with_dead(3, 1, [](coll_comm* comm) {
    Comm all = dup(comm), living = subgroup(comm, {0, 2});
    CHECK(sum(all.get(), 1) == 3);
    if (coll_rank(comm) == 1) die();
    CHECK(coll_barrier(all.get()) == COLL_PEER_LOST);
    CHECK(sum(living.get(), 1) == 2);
    CHECK(arena(comm).ranges() == 3);
    CHECK(sum(living.get(), 1) == 2);
    all.reset();
    CHECK(sum(living.get(), 1) == 2);
    CHECK(arena(comm).ranges() == 2);
    CHECK(sum(living.get(), 1) == 2);
  });
}

TEST(a_rank_that_dies_while_groups_are_formed_hangs_nobody) {
  std::mt19937 random(11);
  for (int round = 0; round < 8; ++round) {
    const std::string name = job_of_test() + std::to_string(round);
    std::array<int, 2> met_all{};
    CHECK(::pipe(met_all.data()) == 0);
    std::vector<check::Child> children;
    for (int rank = 0; rank < 3; ++rank) {
      children.emplace_back([&, rank] {
        const Comm comm = met(name, rank, 3);
        CHECK(::write(met_all[1], "", 1) == 1);
        for (int i = 0;; ++i) {
          coll_comm* made = nullptr;
          const coll_status status = coll_split(comm.get(), (rank + i) % 2, 0, &made);
          const Comm group(made);
          if (status == COLL_PEER_LOST) break;
          ok(status);
        }
        CHECK(coll_last_error_rank() == round % 3);
      });
    }
    for (int rank = 0; rank < 3; ++rank) {
      char byte = 0;
      pollfd met_one{met_all[0], POLLIN, 0};
      CHECK(::poll(&met_one, 1, 20'000) == 1 && ::read(met_all[0], &byte, 1) == 1);
    }
    for (const int fd : met_all) ::close(fd);
    ::usleep(static_cast<useconds_t>(random() % 20'000));
    children[static_cast<std::size_t>(round % 3)].kill(SIGKILL);
    const auto killed = Clock::now();
    for (int rank = 0; rank < 3; ++rank) {
      const int status = children[static_cast<std::size_t>(rank)].wait();
      CHECK(status == (rank == round % 3 ? 128 + SIGKILL : 0));
    }
    CHECK(Clock::now() - killed < check::promised(std::chrono::seconds(2)));
  }
}

TEST(a_forked_child_has_no_group) {
  with_dead(2, -1, [](coll_comm* comm) {
    const Comm group = dup(comm);
    check::Child child([&] {
      double x = 0;
      coll_comm* made = nullptr;
      CHECK(coll_allreduce(group.get(), &x, &x, 1, COLL_FLOAT64, COLL_SUM) == COLL_CLOSED);
      CHECK(coll_dup(group.get(), &made) == COLL_CLOSED && made == nullptr);
      CHECK(says("from which this one was forked"));
    });
    CHECK(child.wait() == 0);
    CHECK(sum(group.get(), 1) == 2);
  });
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// Groups of the ranks of a group: who is in them, that they are independent, and that they leave
// nothing.
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "child.h"
#include "groups_of_test.h"
#include "instrumented.h"

namespace {

using namespace coll;
using namespace coll::testing;

// Who should be in the group of `rank`, in order.
std::vector<int> expected(int p, int rank, const auto& color, const auto& key) {
  std::vector<int> members;
  for (int r = 0; r < p; ++r) {
    if (color(r) == color(rank)) members.push_back(r);
  }
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) { return key(a) < key(b); });
  return members;
}

TEST(split_by_color_and_key) {
  using Of = std::int64_t (*)(int);
  const std::vector<std::pair<Of, Of>> wishes = {
      {[](int) -> std::int64_t { return 0; }, [](int r) -> std::int64_t { return r; }},
      {[](int) -> std::int64_t { return 7; }, [](int r) -> std::int64_t { return -r; }},
      {[](int r) -> std::int64_t { return r % 2; }, [](int) -> std::int64_t { return 0; }},
      {[](int r) -> std::int64_t { return r / 3; }, [](int r) -> std::int64_t { return r % 2; }},
      {[](int r) -> std::int64_t { return INT64_MAX - r; }, [](int) -> std::int64_t { return 1; }},
      {[](int r) -> std::int64_t { return r == 0 ? -1 : 1; },
       [](int r) -> std::int64_t { return r < 3 ? INT64_MAX : INT64_MIN; }}};
  for (int p = 1; p <= 8; ++p) {
    on_each(p, [&](const Comm& comm) {
      const int rank = coll_rank(comm.get());
      for (const auto& [color, key] : wishes) {
        const Comm group = split(comm.get(), color(rank), key(rank));
        CHECK((group == nullptr) == (color(rank) < 0));
        if (!group) continue;
        const std::vector<int> members = expected(p, rank, color, key);
        CHECK(coll_ranks(group.get()) == static_cast<int>(members.size()));
        CHECK(members[static_cast<std::size_t>(coll_rank(group.get()))] == rank);
        CHECK(gathered(group.get(), rank) == members);
        CHECK(coll_sequence(group.get()) == 1);
      }
    });
  }
}

TEST(subgroup_in_the_order_of_the_list) {
  on_each(5, [](const Comm& comm) {
    const int rank = coll_rank(comm.get());
    for (const std::vector<int>& ranks :
         std::vector<std::vector<int>>{{3, 0, 4}, {2}, {}, {4, 3, 2, 1, 0}}) {
      const Comm group = subgroup(comm.get(), ranks);
      const bool member = std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
      CHECK((group != nullptr) == member);
      if (group) CHECK(gathered(group.get(), rank) == ranks);
    }
  });
}

TEST(dup_is_another_group_of_the_same) {
  on_each(3, [](const Comm& comm) {
    const Comm again = dup(comm.get());
    CHECK(coll_rank(again.get()) == coll_rank(comm.get()) && coll_ranks(again.get()) == 3);
    CHECK(gathered(again.get(), coll_rank(comm.get())) == (std::vector<int>{0, 1, 2}));
    const auto name = [](const Comm& c) {
      return c->wire != nullptr ? c->wire->place().self.job
                                : std::to_string(c->communicator->membership().segment.group());
    };
    CHECK(name(again) != name(comm));
  });
}

TEST(axes_of_a_mesh) {
  const std::vector<std::vector<int>> shapes = {{8}, {2, 4}, {4, 2}, {2, 2, 2}, {1, 8, 1}};
  on_each(8, [&](const Comm& comm) {
    const int rank = coll_rank(comm.get());
    for (const std::vector<int>& shape : shapes) {
      int stride = 8;
      for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
        const int length = shape[static_cast<std::size_t>(axis)];
        stride /= length;
        coll_comm* made = nullptr;
        ok(coll_axis(comm.get(), shape.data(), static_cast<int>(shape.size()), axis, nullptr,
                     &made));
        const Comm along(made);
        std::vector<int> members;
        const int place = rank / stride % length;
        for (int i = 0; i < length; ++i) members.push_back(rank + (i - place) * stride);
        CHECK(gathered(along.get(), rank) == members);
        CHECK(coll_rank(along.get()) == place);
      }
    }
  });
}

void halve(const Comm& comm, int world) {
  const int p = coll_ranks(comm.get()), rank = coll_rank(comm.get());
  const Comm half = split(comm.get(), rank < p / 2 ? 0 : 1, -rank);
  double members = 0;
  for (const int r : gathered(half.get(), world)) members += r;
  CHECK(sum(half.get(), world) == members);
  if (half->communicator) CHECK(half->communicator->world_rank() == world);
  if (p > 1) halve(half, world);
  CHECK(sum(half.get(), 1) == coll_ranks(half.get()));
}

TEST(groups_of_groups) {
  for (const int p : {1, 5, 8}) {
    on_each(p, [](const Comm& comm) { halve(comm, coll_rank(comm.get())); });
  }
}

// Each rank goes through its groups in an order of its own; only within a group is it the same.
TEST(calls_on_different_groups_do_not_mix) {
  on_each(6, [](const Comm& comm) {
    const int rank = coll_rank(comm.get());
    const Comm pair = split(comm.get(), rank / 2), third = split(comm.get(), rank % 2, -rank);
    for (int i = 0; i < 50; ++i) {
      double x = 0, y = 0;
      // Pairs first on the even rounds, and the others' calls are of other sizes.
      if (i % 2 == 0) x = sum(pair.get(), rank);
      if (rank % 2 == 0) {
        y = sum(third.get(), rank);
      } else {
        CHECK(gathered(third.get(), rank) == (std::vector<int>{5, 3, 1}));
      }
      if (i % 2 == 1) x = sum(pair.get(), rank);
      const int first = rank / 2 * 2;
      CHECK(x == first + first + 1);
      CHECK(rank % 2 != 0 || y == 6);
      if (i % 10 == rank / 2) ok(coll_barrier(pair.get()));
      if (i % 25 == 0) CHECK(sum(comm.get(), 1) == 6);
    }
  });
}

TEST(groups_work_at_once_from_several_threads) {
  on_each(3, [](const Comm& comm) {
    const int rank = coll_rank(comm.get());
    std::vector<Comm> groups;
    for (int i = 0; i < 4; ++i) groups.push_back(dup(comm.get()));
    run_ranks(4, [&](int i) {
      coll_comm* mine = groups[static_cast<std::size_t>(i)].get();
      for (int n = 0; n < 50; ++n) {
        CHECK(sum(mine, rank * 100 + i) == 300 + 3 * i);
        if (n % 10 != 0) continue;
        const Comm inner = split(mine, rank == i ? -1 : 0);
        if (inner) CHECK(sum(inner.get(), 1) == (i < 3 ? 2 : 3));
      }
    });
  });
}

TEST(a_group_goes_on_when_those_it_came_from_are_closed) {
  on_each(4, [](Comm comm) {
    Comm half = split(comm.get(), coll_rank(comm.get()) / 2);
    comm.reset();
    CHECK(sum(half.get(), 1) == 2);
    Comm other = dup(half.get());
    half.reset();
    std::vector<double> x(50'000, 1.0);
    ok(coll_allreduce(other.get(), x.data(), x.data(), x.size(), COLL_FLOAT64, COLL_SUM));
    CHECK(std::all_of(x.begin(), x.end(), [](double v) { return v == 2; }));
  });
}

TEST(an_abort_ends_one_group_only) {
  on_each(4, [](const Comm& comm) {
    const int rank = coll_rank(comm.get());
    const Comm half = split(comm.get(), rank / 2), all = dup(comm.get());
    // Between machines only ranks that are connected learn why.
    if (half->wire != nullptr) ok(coll_barrier(half.get()));
    if (rank == 3) ok(coll_abort(half.get(), "enough"));
    if (rank >= 2) {
      CHECK(coll_barrier(half.get()) == COLL_ABORTED);
      CHECK(says("rank 1 aborted: enough") && coll_last_error_rank() == 1);
    } else {
      CHECK(sum(half.get(), 1) == 2);
    }
    CHECK(sum(comm.get(), 1) == 4);
    const Comm again = split(comm.get(), rank / 2);
    CHECK(sum(again.get(), 1) == 2);
    CHECK(sum(all.get(), 1) == 4);
    ok(coll_barrier(again.get()));
    coll_abort(comm.get(), "all over");
    CHECK(coll_barrier(comm.get()) == COLL_ABORTED);
    coll_comm* made = nullptr;
    CHECK(coll_dup(comm.get(), &made) == COLL_ABORTED && made == nullptr);
    CHECK(sum(again.get(), 1) == 2 && sum(all.get(), 1) == 4);
  });
}

// ---- nothing is left ---------------------------------------------------------------------------

long blocks(const FileArena& arena) {
  struct stat status{};
  CHECK(::fstat(arena.fd(), &status) == 0);
  return static_cast<long>(status.st_blocks);
}

TEST(a_thousand_splits_leave_nothing) {
  constexpr int kRanks = 3;
  std::atomic<int> maps{0}, descriptors{0};
  std::atomic<long> before{0};
  on_both(kRanks, [&](const Comm& comm) {
    const int rank = coll_rank(comm.get());
    const bool shared = comm->communicator->membership().memory->fd() >= 0;
    const auto once = [&](int i) {
      const Comm group = split(comm.get(), (rank + i) % 2, i % 3 * rank);
      if (i % 50 == 0) CHECK(sum(group.get(), 1) == coll_ranks(group.get()));
    };
    const auto quiet = [&](auto look) {
      ok(coll_barrier(comm.get()));
      ok(coll_barrier(comm.get()));
      if (rank == 0) look();
      ok(coll_barrier(comm.get()));
    };
    once(0);
    quiet([&] {
      maps = mappings();
      descriptors = check::descriptors();
      before = shared ? blocks(arena(comm.get())) : 0;
    });
    for (int i = 1; i <= (check::kInstrumented ? 300 : 1000); ++i) once(i);
    quiet([&] {
      CHECK(check::descriptors() == descriptors);
      // What the allocator of the C library maps comes and goes.
      CHECK(mappings() < maps + 20);
      if (!shared) return;
      CHECK(arena(comm.get()).ranges() == 1);
      CHECK(blocks(arena(comm.get())) == before);
    });
  });
}

TEST(a_job_of_many_groups_gives_all_its_memory_back) {
  constexpr int kRanks = 4;
  run_ranks(kRanks, [](int rank) {
    Comm comm = met(job_of_test(), rank, kRanks);
    const auto kept = comm->communicator->membership().arena;
    std::vector<Comm> groups;
    // The deadlock detector of the thread sanitizer takes 64 mutexes of a thread.
    for (int i = 0; i < 60; ++i) {
      groups.push_back(split((i % 3 == 0 ? comm : groups.back()).get(), 0, i * rank));
    }
    CHECK(arena(comm.get()).ranges() == 61);
    CHECK(sum(groups.back().get(), 1) == kRanks);
    while (groups.size() > 1) groups.erase(groups.begin() + rank % static_cast<int>(groups.size()));
    CHECK(sum(comm.get(), 1) == kRanks);
    groups.clear();
    // All have closed theirs where the next call of the last group that is left ends.
    CHECK(sum(comm.get(), 1) == kRanks);
    CHECK(dynamic_cast<FileArena&>(*kept).ranges() == 1);
    CHECK(sum(comm.get(), 1) == kRanks);
    comm.reset();
  });
}

// A mutex is let go of by the thread that holds it alone: the memory stays until then.
TEST(groups_may_be_closed_by_other_threads) {
  run_ranks(2, [](int rank) {
    const Comm comm = met(job_of_test(), rank, 2);
    for (int i = 0; i < 20; ++i) {
      Comm group = dup(comm.get());
      std::thread([&group] { group.reset(); }).join();
    }
    CHECK(sum(comm.get(), 1) == 2);
    Comm last = dup(comm.get());
    CHECK(sum(comm.get(), 1) == 2);
    CHECK(arena(comm.get()).ranges() == 2);
    CHECK(sum(last.get(), 1) == 2);
    std::thread([&] {
      const Comm inner = dup(last.get());
      CHECK(sum(inner.get(), 1) == 2);
    }).join();
    CHECK(sum(comm.get(), 1) == 2);
  });
}

}  // namespace

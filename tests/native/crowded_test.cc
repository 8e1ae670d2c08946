// SPDX-License-Identifier: Apache-2.0
// Whether the ranks of a group had a core each when it began decides what is chosen.
#include <sched.h>

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "bootstrap/membership.h"
#include "communicator/communicator.h"
#include "groups_of_test.h"
#include "select/choose.h"
#include "transport/usable_cores.h"

namespace {

using namespace coll;
using namespace coll::testing;

constexpr std::size_t kLong = 8 << 20;

std::string name_of(const Choices& choices) {
  return algorithms()[static_cast<std::size_t>(choices.near.algorithm)]->name;
}

std::string chosen(Kind kind, int ranks, std::size_t bytes, bool crowded) {
  return name_of(choose(kind, ranks, bytes, {.crowded = crowded}));
}

// The calling thread may use the core only, and then again what it could before.
class Pinned {
 public:
  explicit Pinned(int core) {
    CHECK(sched_getaffinity(0, sizeof before_, &before_) == 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(core), &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
  }
  ~Pinned() { sched_setaffinity(0, sizeof before_, &before_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  cpu_set_t before_{};
};

int first_core() { return std::countr_zero(usable_cores()); }

SegmentShape shape_of(int ranks) {
  SegmentShape shape;
  shape.ranks = static_cast<std::uint32_t>(ranks);
  return shape;
}

TEST(ranks_that_share_cores_choose_what_does_less) {
  CHECK(chosen(Kind::reduce, 8, kLong, false) == "double_tree");
  CHECK(chosen(Kind::reduce, 8, kLong, true) == "bine");
  CHECK(chosen(Kind::reduce, 7, kLong, true) == "direct");
  CHECK(chosen(Kind::reduce, 8, 128 << 10, false) == "double_tree");
  CHECK(chosen(Kind::reduce, 8, 128 << 10, true) == "direct");
  CHECK(chosen(Kind::allreduce, 8, 8 << 10, false) == "direct_two_shot");
  CHECK(chosen(Kind::allreduce, 8, 8 << 10, true) == "direct_one_shot");
  CHECK(chosen(Kind::allreduce, 4, 8 << 10, true) == "direct_one_shot");
  CHECK(chosen(Kind::allreduce, 4, 32 << 10, true) == "direct_two_shot");
  CHECK(chosen(Kind::allreduce, 3, 32 << 10, true) == "direct_one_shot");
  CHECK(chosen(Kind::allreduce, 3, 768 << 10, true) == "direct_two_shot");
  CHECK(chosen(Kind::allreduce, 3, kLong, true) == "recursive_doubling");
  CHECK(chosen(Kind::allreduce, 3, kLong, false) == "direct_two_shot");
  CHECK(chosen(Kind::allreduce, 3, 16 << 20, true) == "direct_two_shot");
  for (const int ranks : {2, 4}) {
    CHECK(chosen(Kind::allreduce, ranks, kLong, true) == "direct_two_shot");
  }
  const Choices reached = choose(Kind::allreduce, 3, kLong, {.crowded = true});
  CHECK(reached.within_reach->algorithm == find_algorithm(Kind::allreduce, "direct_two_shot"));
}

// Of three ranks on two cores who shares one with whom decides.
TEST(three_in_turns_go_from_core_to_core) {
  const auto three = [](Kind kind, std::size_t bytes, bool in_turns) {
    return name_of(choose(kind, 3, bytes, {.crowded = true, .in_turns = in_turns}));
  };
  CHECK(three(Kind::reduce, 4 << 20, true) == "chain");
  CHECK(three(Kind::reduce, 4 << 20, false) == "direct");
  CHECK(three(Kind::reduce, kLong, true) == "direct");
  CHECK(three(Kind::allreduce, 500'000, true) == "recursive_doubling");
  CHECK(three(Kind::allreduce, 500'000, false) == "direct_two_shot");
  CHECK(three(Kind::reduce_scatter, kLong, true) == "recursive_halving");
  CHECK(three(Kind::reduce_scatter, kLong, false) == "direct");
  const Wish in_turns{.crowded = true, .in_turns = true};
  CHECK(name_of(choose(Kind::reduce, 4, kLong, in_turns)) == "direct");
  CHECK(name_of(choose(Kind::reduce, 4, 1 << 20, in_turns)) == "bine");
}

TEST(ranks_enter_in_turns_where_neighbours_are_on_other_cores) {
  const std::vector<Membership> group = local_group(shape_of(3));
  const Segment& segment = group.front().segment;
  const auto entered = [&](std::uint64_t first, std::uint64_t second, std::uint64_t third) {
    const std::array cores = {first, second, third};
    for (int r = 0; r < 3; ++r) {
      segment.rank(r).watch.entered_with.store(cores[static_cast<std::size_t>(r)],
                                               std::memory_order_relaxed);
    }
    return entered_in_turns(segment);
  };
  CHECK(entered(1, 2, 1) && entered(1, 2, 4));
  CHECK(!entered(1, 1, 2) && !entered(1, 2, 2) && !entered(3, 3, 3) && !entered(1, 2, 3));
}

TEST(tiles_of_ranks_that_share_cores) {
  const auto tile = [](Kind kind, int ranks, std::size_t bytes, bool crowded) {
    return choose(kind, ranks, bytes, {.crowded = crowded}).near.tile_bytes;
  };
  CHECK(tile(Kind::allreduce, 3, kLong, true) == 512 << 10);
  CHECK(tile(Kind::allreduce, 4, kLong, true) == 256 << 10);
  CHECK(tile(Kind::reduce, 7, kLong, true) == 128 << 10);
  CHECK(tile(Kind::reduce, 8, 512 << 10, true) == 128 << 10);
  CHECK(tile(Kind::reduce, 8, kLong, true) == 256 << 10);
  CHECK(tile(Kind::reduce, 5, kLong, true) == 256 << 10);
}

TEST(calls_of_ranks_that_share_cores_are_short_up_to_64_kib) {
  const auto lag = [](std::size_t bytes, bool crowded) {
    return choose(Kind::alltoall, 5, bytes, {.crowded = crowded}).near.lag;
  };
  CHECK(lag(64 << 10, true) == 0 && lag((64 << 10) + 1, true) == 1);
  CHECK(lag(32 << 10, false) == 0 && lag((32 << 10) + 1, false) == 1);
}

TEST(a_group_keeps_whether_it_entered_crowded) {
  const int cores = std::popcount(usable_cores());
  const std::vector<Membership> enough = local_group(shape_of(cores));
  const std::vector<Membership> more = local_group(shape_of(cores + 1));
  CHECK(!entered_crowded(enough.front().segment) && entered_crowded(more.front().segment));
  for (int r = 0; r < cores; ++r) {
    enough.front().segment.rank(r).watch.cores.store(1, std::memory_order_relaxed);
  }
  CHECK(!entered_crowded(enough.front().segment));
  CHECK(cores == 1 || share_cores(enough.front().segment));
}

// Groups take it from the one that they are parts of.
TEST(all_ranks_and_their_groups_choose_alike) {
  const Pinned pinned(first_core());
  const auto chosen_by = [](const Comm& comm) {
    return name_of(comm->communicator->choices(Kind::reduce, kLong, {}));
  };
  on_both(4, [&](const Comm& comm) {
    CHECK(chosen_by(comm) == "direct");
    CHECK(chosen_by(split(comm.get(), coll_rank(comm.get()) / 3)) ==
          (coll_rank(comm.get()) < 3 ? "direct" : chosen(Kind::reduce, 1, kLong, true)));
    std::vector<float> x(kLong / sizeof(float), 1), out(x.size());
    ok(coll_reduce(comm.get(), x.data(), out.data(), x.size(), COLL_FLOAT32, COLL_SUM, 0));
    CHECK(coll_rank(comm.get()) != 0 || out.back() == 4);
  });
}

}  // namespace

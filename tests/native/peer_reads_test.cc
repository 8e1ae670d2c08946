// SPDX-License-Identifier: Apache-2.0
// Sums of what the kernel reads from other ranks, and when ranks look whether it may.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "algorithms/algorithm.h"
#include "bootstrap/membership.h"
#include "check.h"
#include "engine/executor.h"
#include "engine/read_turn.h"
#include "plan/lower.h"
#include "plan/reach.h"

namespace {

using namespace coll;  // NOLINT: a test of its inside

constexpr int kRanks = 3;
constexpr std::size_t kCount = 300007;  // a part is longer than what is read at a time

Plan two_shot(Mode mode) {
  const int number = find_algorithm(Kind::allreduce, "direct_two_shot");
  const Schedule schedule = make_schedule(*algorithms()[static_cast<std::size_t>(number)], kRanks);
  Plan plan = lower(schedule, {.mode = mode, .depth = 4, .lag = 1, .mixed = mode == Mode::pull});
  return mode == Mode::pull ? resolve(plan, Reach(plan.ranks.size(), {true, true})) : plan;
}

// One of them, all in this thread, step by step.
struct Rank {
  Segment segment;
  int rank;
  std::shared_ptr<PeerMemory> peers;
  Binding staged, read;
  Executor executor;
  GroupClock clock;
  ReadTurn turn;
  std::vector<float> x = std::vector<float>(kCount), sum = std::vector<float>(kCount);

  Rank(const Segment& s, int r, const Plan& stages, const Plan& reads)
      : segment(s),
        rank(r),
        peers(std::make_shared<PeerMemory>(s, r)),
        staged(stages, r, s),
        read(reads, r, s),
        executor(s, r, nullptr, Placement::near, peers) {
    segment.rank(rank).life.pid.store(::getpid());
    for (Binding* one : {&staged, &read}) {
      one->bind({.input = x.data(),
                 .output = sum.data(),
                 .count = kCount,
                 .dtype = Dtype::float32,
                 .tile_bytes = 64 << 10});
    }
  }

  // Number `call`, in which this rank says that it may be read, or does not.
  void begin(std::uint64_t call, bool tells, bool rough) {
    for (std::size_t i = 0; i < kCount; ++i) {
      x[i] = rough ? rough_value(i)
                   : static_cast<float>(i % 1000 + call * static_cast<std::uint64_t>(rank + 1));
    }
    clock.calls = call;
    CallRecord& record = segment.rank(rank).records[call % kRecords];
    record.word[5].store(tells ? PeerMemory::name_of(x.data()) : 0);
    record.word[6].store(tells ? PeerMemory::name_of(sum.data()) : 0);
    executor.begin(staged, clock, {.within = &read, .read = &read, .turn = &turn});
  }

  // Sums of three such depend on their order.
  float rough_value(std::size_t i) const {
    return std::sin(static_cast<float>(i + 1) * static_cast<float>(rank + 1)) *
           static_cast<float>(1 << i % 12);
  }

  bool is_right() const {
    const std::uint64_t of_calls = clock.calls * kRanks * (kRanks + 1) / 2;
    for (std::size_t i = 0; i < kCount; ++i) {
      if (sum[i] != static_cast<float>(i % 1000 * kRanks + of_calls)) return false;
    }
    return true;
  }
};

struct Group {
  std::vector<Membership> members = local_group({.ranks = kRanks});
  Plan stages = two_shot(Mode::staged), reads = two_shot(Mode::pull);
  std::vector<std::unique_ptr<Rank>> ranks;
  std::uint64_t calls = 0;
  bool rough = false;

  Group() {
    for (int r = 0; r < kRanks; ++r) {
      ranks.push_back(std::make_unique<Rank>(members[0].segment, r, stages, reads));
    }
  }

  // Whether the sum was read.
  bool sums(bool last_tells = true) {
    ++calls;
    for (const auto& one : ranks) {
      one->begin(calls, one->turn.looks() && (one->rank + 1 < kRanks || last_tells), rough);
    }
    std::vector<bool> done(kRanks);
    constexpr int kPatience = 1000000;
    for (int turn = 0; std::find(done.begin(), done.end(), false) != done.end(); ++turn) {
      CHECK(turn < kPatience);
      const auto r = static_cast<std::size_t>(turn % kRanks);
      if (!done[r]) done[r] = ranks[r]->executor.advance(0) == Progress::done;
    }
    bool read = true;
    for (const auto& one : ranks) {
      CHECK(rough || one->is_right());
      read = read && one->executor.binding() == &one->read;
    }
    return read;
  }

  bool allowed() const {
    return std::all_of(ranks.begin(), ranks.end(),
                       [](const auto& one) { return one->peers->reads_all(); });
  }
};

TEST(sums_are_read_and_staged_and_right_both_ways) {
  Group group;
  if (!group.allowed()) return;
  int read = 0;
  constexpr int kCalls = 12;
  for (int i = 0; i < kCalls; ++i) read += group.sums() ? 1 : 0;
  CHECK(read > 1 && read < kCalls);
}

TEST(what_is_read_is_added_in_the_same_order) {
  Group group;
  if (!group.allowed()) return;
  group.rough = true;
  CHECK(!group.sums());
  const std::vector<float> staged = group.ranks[0]->sum;
  int read = 0;
  for (int i = 0; i < 8; ++i) {
    read += group.sums() ? 1 : 0;
    for (const auto& one : group.ranks) {
      CHECK(std::memcmp(one->sum.data(), staged.data(), kCount * sizeof(float)) == 0);
    }
  }
  CHECK(read > 0);
}

TEST(where_one_does_not_tell_all_are_staged) {
  Group group;
  if (!group.allowed()) return;
  for (int i = 0; i < 8; ++i) CHECK(!group.sums(false));
}

TEST(nobody_looks_before_a_call_that_will_be_staged) {
  Group group;
  if (!group.allowed()) return;
  for (int i = 0; i < 24; ++i) {
    const bool looks = group.ranks[0]->turn.looks();
    for (const auto& one : group.ranks) CHECK(one->turn.looks() == looks);
    const bool read = group.sums();
    CHECK(i == 0 || read == looks);  // of the first one nothing is known
  }
}

TEST(who_is_refused_again_and_again_looks_seldom) {
  ReadTurn turn;
  int looked = 0;
  constexpr int kCalls = 2000;
  for (int i = 0; i < kCalls; ++i) {
    looked += turn.looks() ? 1 : 0;
    turn.found(false);
    turn.look_next(turn.looks_again());
  }
  CHECK(looked > 4 && looked < 20);
  turn.look_next(true);
  turn.found(true);
  CHECK(turn.all_read() && turn.looks_again());
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// Plans for near and far cores: rank 0 tells all, in every large call, which one runs.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "base/error.h"
#include "bootstrap/environment.h"
#include "communicator/call.h"
#include "communicator/note.h"
#include "engine/plan_trial.h"
#include "engine/spent.h"
#include "groups_of_test.h"
#include "instrumented.h"
#include "kernels/half_pairs.h"
#include "select/choose.h"

namespace {

using namespace coll;
using namespace coll::testing;

// Of three ways that of the kernel has one question, and stages, where they are tried, take turns.
TEST(stages_are_tried_as_for_near_and_for_far_cores_beside_what_is_read) {
  PlanTrial plans;
  double before = 0;
  int read = 0, far = 0;
  unsigned turns = 0;
  for (std::uint64_t number = 1; number <= 2000; ++number) {
    const bool moved = number > 1000;  // stages for far cores are the fastest way since then
    const bool reads = !plans.ask(Chosen::not_read, 7, 0, 1 << 24, number);
    std::optional<bool> turn;
    if (plans.tries(Chosen::not_read)) turn = (++turns & 1) != 0;
    const bool is_far = !reads && plans.ask(Chosen::far, 7, 0, 1 << 24, number, turn);
    const auto spent = [&](std::uint64_t) noexcept { return std::optional<double>(before); };
    if (reads) {
      plans.learn({Chosen::not_read}, spent);
    } else {
      plans.learn({Chosen::not_read, Chosen::far}, spent);
    }
    before = reads ? 200 : is_far ? (moved ? 100 : 400) : (moved ? 300 : 250);
    if (number % 1000 > 500 || number == 1000) {
      read += !moved && reads ? 1 : 0;
      far += moved && is_far ? 1 : 0;
    }
  }
  CHECK(read > 450 && far > 400);
}

TEST(what_the_slowest_rank_needed_counts) {
  PlanTrial plans;
  bool before = false;
  std::uint64_t asked = 0;
  int far = 0;
  for (std::uint64_t number = 1; number <= 200; ++number) {
    const bool chosen = plans.ask(Chosen::far, 7, 0, 1 << 20, number);
    plans.learn({Chosen::far}, [&](std::uint64_t call) noexcept -> std::optional<double> {
      asked = call;
      if (number % 5 == 0) return std::nullopt;  // some rank has not said so yet
      return before ? 900 : 300;
    });
    CHECK(asked == number - 1);
    before = chosen;
    if (number > 100) far += chosen ? 1 : 0;
  }
  CHECK(far <= 4);
}

// Candidates of a race, or the calls of a program, take turns: each is judged by its own times.
TEST(plans_of_one_size_do_not_disturb_each_other) {
  constexpr std::uint64_t kQuick = 0x7f0010, kSlow = 0x7f0020;
  PlanTrial plans;
  int far[2] = {0, 0};
  double before = 0;
  for (std::uint64_t number = 1; number <= 800; ++number) {
    const bool slow = number % 2 == 0;
    const bool chosen = plans.ask(Chosen::far, slow ? kSlow : kQuick, 0, 1 << 20, number);
    const double took = slow ? (chosen ? 2000 : 1000) : (chosen ? 50 : 100);
    plans.learn({Chosen::far},
                [&](std::uint64_t) noexcept { return std::optional<double>(before); });
    before = took;
    if (number > 400) far[slow ? 1 : 0] += chosen ? 1 : 0;
  }
  CHECK(far[0] > 180 && far[1] < 20);
}

// Both are asked before a call of which one turns out to count.
TEST(what_is_reached_and_what_is_far_are_two_questions) {
  PlanTrial plans;
  int far = 0, staged = 0;
  double before = 0;
  for (std::uint64_t number = 1; number <= 400; ++number) {
    const bool reaches = number % 2 == 0;
    const bool is_far = plans.ask(Chosen::far, 7, 0, 1 << 20, number);
    const bool is_staged = plans.ask(Chosen::staged, 7, 0, 1 << 20, number);
    const Chosen counts = reaches ? Chosen::staged : Chosen::far;
    plans.learn({counts}, [&](std::uint64_t) noexcept { return std::optional<double>(before); });
    before = reaches ? (is_staged ? 100 : 200) : (is_far ? 200 : 100);
    if (number <= 200) continue;
    staged += reaches && is_staged ? 1 : 0;
    far += !reaches && is_far ? 1 : 0;
  }
  CHECK(staged > 90 && far < 10);
}

// Nor where their names fall on one place, or plan and tile make up the same number.
TEST(no_plan_forgets_because_of_another_one) {
  constexpr std::uint64_t kQuick = 0x7f0000;
  constexpr std::size_t kTile = 256 << 10;
  int undecided = 0;
  for (std::uint64_t other = 1; other <= 4000; ++other) {
    PlanTrial plans;
    int far = 0;
    double before = 0;
    for (std::uint64_t number = 1; number <= 60; ++number) {
      const bool slow = number % 2 == 0;
      const bool chosen = slow ? plans.ask(Chosen::far, kQuick + 4096 * other,
                                           kTile - 4096 * (other % 64), 1 << 20, number)
                               : plans.ask(Chosen::far, kQuick, kTile, 1 << 20, number);
      const double took = slow ? (chosen ? 2000 : 1000) : (chosen ? 50 : 100);
      plans.learn({Chosen::far},
                  [&](std::uint64_t) noexcept { return std::optional<double>(before); });
      before = took;
      if (!slow && number > 20) far += chosen ? 1 : 0;
    }
    undecided += far < 15 ? 1 : 0;
  }
  CHECK(undecided == 0);
}

TEST(how_long_a_call_took_is_of_that_call) {
  const Spent spent(0x12345, 1234.9);
  CHECK(Spent(spent.word()).of(0x12345).value_or(0) == 1234 && !spent.of(0x12346) &&
        !Spent().of(0));
}

// A rank that only sends ends a call before rank 0 has asked how long the one before took.
TEST(how_long_a_call_took_is_known_when_the_next_one_has_ended) {
  DoneLine done{};
  for (const std::uint64_t call : {5U, 9U, 10U}) {
    say_spent(done, Spent(call, 100.0 * static_cast<double>(call)));
  }
  CHECK(spent_in(done, 9).value_or(0) == 900 && spent_in(done, 10).value_or(0) == 1000);
  CHECK(!spent_in(done, 5) && !spent_in(done, 11));
}

// What is converted to be folded, or long, is folded once, by two shots, where two far ranks would
// fold all of it each; both give the same bits.
TEST(far_ranks_fold_narrow_floats_and_long_vectors_once) {
  const Wish narrow{.converts = true};
  const auto far = [](std::size_t bytes, const Wish& wish) {
    const int number = choose(Kind::allreduce, 2, bytes, wish).far.algorithm;
    return std::string(algorithms()[static_cast<std::size_t>(number)]->name);
  };
  CHECK(far(256 << 10, narrow) == "direct_two_shot" && far(256 << 10, {}) == "direct_one_shot");
  CHECK(far(8 << 10, narrow) == "direct_one_shot" && far(8 << 20, narrow) == "direct_two_shot");
  CHECK(far(512 << 10, {}) == "direct_one_shot" && far((512 << 10) + 4, {}) == "direct_two_shot");
  CHECK(choose(Kind::allreduce, 2, 256 << 10, narrow).near ==
        choose(Kind::allreduce, 2, 256 << 10).near);
  const auto converts = [](Dtype dtype, Reduction op) {
    return wish_of({.kind = Kind::allreduce, .dtype = dtype, .op = op}).converts;
  };
  CHECK(converts(Dtype::bfloat16, Reduction::sum) && converts(Dtype::float16, Reduction::max));
  CHECK(converts(Dtype::float16, Reduction::sum) == !kernels::adds_halves());
  CHECK(!converts(Dtype::float32, Reduction::sum));
  CHECK(is_narrow_float(Dtype::float16) && is_narrow_float(Dtype::bfloat16));
  CHECK(!is_narrow_float(Dtype::float32) && !is_narrow_float(Dtype::int8));
}

TEST(many_far_ranks_take_long_tiles_for_long_vectors) {
  const Choices long_ones = choose(Kind::allreduce, 4, 8 << 20);
  CHECK(long_ones.far.tile_bytes > long_ones.near.tile_bytes);
  CHECK(long_ones.far.algorithm == long_ones.near.algorithm);
  CHECK(choose(Kind::allreduce, 4, 2 << 20).far == choose(Kind::allreduce, 4, 2 << 20).near);
}

TEST(two_ranks_far_apart_take_one_shot) {
  const Choices large = choose(Kind::allreduce, 2, 384 << 10),
                small = choose(Kind::allreduce, 2, 8);
  CHECK(large.placed && large.near.algorithm != large.far.algorithm && large.within_reach);
  CHECK(!small.placed && small.near == small.far && !small.within_reach);
  CHECK(!choose(Kind::allreduce, 1, 4 << 20).placed);
  // Two ranks tell where they are as soon as it pays, more where they tell something else anyway.
  CHECK(choose(Kind::allgather, 2, 8 << 10).placed && !choose(Kind::allgather, 4, 8 << 10).placed);
  CHECK(choose(Kind::allgather, 4, 64 << 10).placed);
  // Vectors that are cut into other tiles on far cores, too: none of them is so short.
  for (const Kind kind : {Kind::allreduce, Kind::broadcast, Kind::reduce}) {
    const Choices of_page = choose(kind, 2, 5000);
    CHECK(!of_page.placed && of_page.near == of_page.far);
  }
}

TEST(two_ranks_send_one_way_in_blocks_of_one_tile) {
  for (const Kind kind : {Kind::broadcast, Kind::reduce}) {
    const Choices by_blocks = choose(kind, 2, 200 << 10);
    CHECK(by_blocks.near == by_blocks.far && by_blocks.near.lag == 0);
    CHECK(by_blocks.near.algorithm == find_algorithm(kind, "chain"));
    CHECK(choose(kind, 2, 300 << 10).near.lag == 1 && choose(kind, 2, 90 << 10).near.lag == 1);
    // What is named keeps its tiles, and a core that is shared its one message.
    CHECK(choose(kind, 2, 200 << 10, {.algorithm = find_algorithm(kind, "binomial")}).near.lag ==
          1);
    CHECK(choose(kind, 2, 200 << 10, {.crowded = true}).near.lag == 1);
  }
}

TEST(long_calls_may_be_read_where_no_core_is_shared) {
  const Choices sum = choose(Kind::allreduce, 2, 1 << 20);
  CHECK(sum.read && sum.read->mode == Mode::pull && sum.within_reach->mode == Mode::push);
  CHECK(sum.read->algorithm == sum.near.algorithm);
  for (const Kind kind : {Kind::allreduce, Kind::allgather, Kind::alltoall}) {
    CHECK(choose(kind, 2, 1 << 20).read && choose(kind, 4, 8 << 20).read);
    CHECK(!choose(kind, 2, 256 << 10).read && !choose(kind, 17, 8 << 20).read);
    CHECK(!choose(kind, 4, 1 << 20, {.crowded = true}).read);
    const bool moves = kind != Kind::allreduce;
    CHECK(choose(kind, 4, 8 << 20, {.crowded = true}).read.has_value() == moves);
  }
  // By another tree, or another way that a caller has named, it would not be the same call.
  const int ring = find_algorithm(Kind::allreduce, "ring");
  CHECK(!choose(Kind::allreduce, 2, 1 << 20, {.algorithm = ring}).read);
  CHECK(!choose(Kind::allgather, 2, 1 << 20, {.mode = static_cast<int>(Mode::staged)}).read);
  CHECK(!choose(Kind::broadcast, 2, 8 << 20).read);
}

// Which of them runs depends on timing and on where buffers lie: results must not. The sum of two
// operands in rank order has one tree only.
TEST(all_that_a_call_may_run_sums_alike) {
  const auto tree = [](const Choice& c) {
    return algorithms()[static_cast<std::size_t>(c.algorithm)]->tree;
  };
  for (int kind = 0; kind < kKinds; ++kind) {
    if (!reduces(static_cast<Kind>(kind))) continue;
    for (int p = 2; p <= (check::kShort ? 5 : 20); ++p) {
      for (std::size_t bytes = 8; bytes < std::size_t{1} << 32; bytes *= 2) {
        const Choices choices = choose(static_cast<Kind>(kind), p, bytes);
        std::vector<Choice> others = {choices.far};
        if (choices.within_reach) others.push_back(*choices.within_reach);
        if (choices.read) others.push_back(*choices.read);
        for (const Choice& other : others) {
          if (other.algorithm == choices.near.algorithm) continue;
          CHECK(p == 2 && tree(other).rank_order && tree(choices.near).rank_order);
        }
      }
    }
  }
}

class Assumed {
 public:
  explicit Assumed(const char* placement) { ::setenv(kName, placement, 1); }
  ~Assumed() { ::unsetenv(kName); }
  Assumed(const Assumed&) = delete;
  Assumed& operator=(const Assumed&) = delete;

 private:
  static constexpr char kName[] = "COLLECTIVES_PLACEMENT";
};

TEST(what_the_user_says_counts) {
  CHECK(!assumed_placement());
  const Assumed far("far");
  CHECK(assumed_placement() == Placement::far);
  const Assumed none("nowhere");
  coll_options options = options_of(0, 1);
  coll_comm* comm = nullptr;
  CHECK(coll_local(&options, &comm) == COLL_INVALID_ARGUMENT);
  CHECK(says("COLLECTIVES_PLACEMENT is 'nowhere'"));
}

// Of all lengths around those where choices change, in turns and persistent.
void check_sums(coll_comm* comm) {
  const int p = coll_ranks(comm);
  std::vector<float> x(std::size_t{1} << 19), y(x.size());
  for (int turn = 0; turn < (check::kInstrumented ? 14 : 28); ++turn) {
    const std::size_t n = (std::size_t{1} << (turn % 7 + 13)) - static_cast<std::size_t>(turn % 3);
    x.assign(x.size(), 1.0F);
    ok(coll_allreduce(comm, x.data(), y.data(), n, COLL_FLOAT32, COLL_SUM));
    CHECK(y[0] == static_cast<float>(p) && y[n - 1] == static_cast<float>(p));
    ok(coll_broadcast(comm, y.data(), y.data(), n, COLL_FLOAT32, turn % p));
    const std::size_t part = n / static_cast<std::size_t>(p);
    ok(coll_reduce_scatter(comm, y.data(), x.data(), part * static_cast<std::size_t>(p),
                           COLL_FLOAT32, COLL_MAX));
    CHECK(x[0] == static_cast<float>(p) && x[part - 1] == static_cast<float>(p));
  }
}

TEST(all_ranks_run_what_rank_0_says) {
  for (const char* placement : {"near", "far", "auto"}) {
    const Assumed assumed(placement);
    for (const int p : check::kInstrumented ? std::vector{2} : std::vector{2, 3})
      on_both(p, [](const Comm& comm) { check_sums(comm.get()); });
  }
}

TEST(ranks_need_not_assume_the_same) {
  std::vector<coll_comm*> comms(2);
  const coll_options options = options_of(0, 2);
  {
    const Assumed assumed("far");
    ok(coll_local(&options, comms.data()));
  }
  run_ranks(2, [&](int rank) {
    const Comm comm(comms[static_cast<std::size_t>(rank)]);
    check_sums(split(comm.get(), 0).get());  // made without that word
    check_sums(comm.get());
  });
}

}  // namespace

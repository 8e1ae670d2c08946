// SPDX-License-Identifier: Apache-2.0
// Measured choices: which line a call gets, which lines are refused, that results are right with
// any of them, and that ranks with different ones learn of it.
#include "select/tuned.h"

#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "base/error.h"
#include "check.h"
#include "collectives.h"
#include "select/choose.h"
#include "select/choose_wire.h"
#include "select/forced.h"

using namespace coll;

namespace {

int number(const char* name, Kind kind = Kind::allreduce) { return find_algorithm(kind, name); }

TunedLine line(std::size_t from, const char* name, Placement placement = Placement::near) {
  return {.placement = placement, .from = from, .algorithm = number(name), .tile_bytes = 65536};
}

Error refused(TunedLine bad, int ranks = 3) {
  return thrown<Error>([&] { (void)Tuned(ranks, false, 2, {bad}); });
}

coll_choice choice_of(const char* name, std::uint64_t from, int mode, int lag, std::uint64_t tile) {
  return {.size = sizeof(coll_choice),
          .kind = COLL_ALLREDUCE,
          .far = 0,
          .algorithm = number(name),
          .mode = mode,
          .lag = lag,
          .from = from,
          .tile_bytes = tile};
}

std::vector<coll_comm*> threads(int p) {
  coll_options options{};
  options.size = sizeof options;
  options.ranks = p;
  options.timeout = 20;
  std::vector<coll_comm*> comms(static_cast<std::size_t>(p));
  CHECK(coll_local(&options, comms.data()) == COLL_OK);
  return comms;
}

coll_status sum(coll_comm* comm, std::vector<double>& x) {
  return coll_collective(comm, COLL_ALLREDUCE, x.data(), x.data(), x.size(), COLL_FLOAT64, COLL_SUM,
                         0, -1, COLL_MODE_AUTO, 0);
}

}  // namespace

TEST(lines_go_up_to_the_next) {
  const Tuned tuned(4, false, 2,
                    {line(1000, "ring"), line(64, "circulant"), {.from = 5000, .algorithm = -1}});
  CHECK(tuned.find(Kind::allreduce, 63, Placement::near) == nullptr);
  CHECK(tuned.find(Kind::allreduce, 64, Placement::near)->algorithm == number("circulant"));
  CHECK(tuned.find(Kind::allreduce, 999, Placement::near)->algorithm == number("circulant"));
  CHECK(tuned.find(Kind::allreduce, 4999, Placement::near)->algorithm == number("ring"));
  CHECK(tuned.find(Kind::allreduce, 5000, Placement::near) == nullptr);
  CHECK(tuned.find(Kind::allreduce, 1000, Placement::far) == nullptr);
  CHECK(tuned.find(Kind::allgather, 1000, Placement::near) == nullptr);
  CHECK(Tuned().find(Kind::allreduce, 0, Placement::near) == nullptr);
}

TEST(equal_lines_have_equal_names) {
  const std::vector<TunedLine> lines = {line(8, "ring"), line(64, "circulant")};
  const Tuned one(4, false, 2, lines), other(4, false, 2, {lines[1], lines[0]});
  CHECK(one.id() == other.id() && one.id() != 0);
  CHECK(Tuned(4, false, 2, {lines[0]}).id() != one.id());
  CHECK(Tuned().id() == 0);
}

TEST(lines_that_are_none) {
  CHECK(refused({.kind = static_cast<Kind>(99)}).status == Status::invalid_argument);
  CHECK(refused({.algorithm = 9999}).status == Status::invalid_argument);
  CHECK(refused({.kind = Kind::broadcast, .algorithm = number("ring")}).status ==
        Status::invalid_argument);
  CHECK(
      refused({.kind = Kind::allgather, .algorithm = number("recursive_doubling", Kind::allgather)})
          .status == Status::invalid_argument);
  CHECK(refused({.algorithm = 0, .mode = Mode::pull}).status == Status::invalid_argument);
  CHECK(refused({.algorithm = 0, .lag = 3}).status == Status::invalid_argument);
  CHECK(refused({.algorithm = 0, .mode = Mode::inlined, .lag = 1}).status ==
        Status::invalid_argument);
  CHECK(refused({.placement = static_cast<Placement>(7), .algorithm = 0}).status ==
        Status::invalid_argument);
  const Error twice =
      thrown<Error>([] { (void)Tuned(3, false, 2, {line(8, "ring"), line(8, "circulant")}); });
  CHECK(std::string(twice.what()).find("twice") != std::string::npos);
}

TEST(what_was_measured_goes_first) {
  const Tuned tuned(4, false, 2, {line(0, "ring")});
  const Choices free = choose(Kind::allreduce, 4, 1 << 20, {}, tuned);
  CHECK(free.near.algorithm == number("ring") && free.near.tile_bytes == 65536);
  CHECK(free.table == tuned.id());
  // Far or near depends on timing, so both fold alike; between two ranks all do.
  CHECK(free.far.algorithm == number("ring"));
  const Tuned of_two(2, false, 2, {line(0, "ring")});
  CHECK(choose(Kind::allreduce, 2, 1 << 20, {}, of_two).far.algorithm != number("ring"));
  CHECK(choose(Kind::allreduce, 2, 64, {}, of_two).far ==
        choose(Kind::allreduce, 2, 64, {}, of_two).near);
  CHECK(!choose(Kind::allreduce, 2, 64, {}, of_two).placed);
  // A caller who names an algorithm, or wants a tree that it has not, gets what they want.
  const Choices named =
      choose(Kind::allreduce, 4, 1 << 20, {.algorithm = number("circulant")}, tuned);
  CHECK(named.near.algorithm == number("circulant") && named.table == 0);
  const Choices ordered = choose(Kind::allreduce, 4, 1 << 20, {.rank_order = true}, tuned);
  CHECK(ordered.near.algorithm != number("ring") && ordered.table == 0);
  // What is too long for its mode goes by rule.
  const Tuned small(4, false, 2, {{.algorithm = number("ring"), .mode = Mode::inlined, .lag = 0}});
  CHECK(choose(Kind::allreduce, 4, 64, {}, small).near.mode == Mode::inlined);
  CHECK(choose(Kind::allreduce, 4, 1 << 20, {}, small).near.mode == Mode::staged);
  const Tuned wire(4, true, 8, {line(0, "ring")});
  CHECK(choose_for_wire(Kind::allreduce, 4, 1 << 20, {}, true, wire).algorithm == number("ring"));
}

TEST(results_are_right_with_every_choice) {
  constexpr int kRanks = 3;
  const auto comms = threads(kRanks);
  run_ranks(kRanks, [&](int rank) {
    coll_comm* comm = comms[static_cast<std::size_t>(rank)];
    for (const char* name : {"ring", "circulant", "direct_two_shot", "binomial_tree"}) {
      for (const int lag : {0, 1, 2}) {
        for (const std::uint64_t tile : {std::uint64_t{0}, std::uint64_t{4096}}) {
          const coll_choice lines[] = {choice_of(name, 0, COLL_MODE_INLINE, 0, 0),
                                       choice_of(name, 1024, COLL_MODE_STAGED, lag, tile)};
          CHECK(coll_tune(comm, lines, 2) == COLL_OK);
          for (const std::size_t n : {std::size_t{1}, std::size_t{100}, std::size_t{70000}}) {
            std::vector<double> x(n, rank + 1.0);
            CHECK(sum(comm, x) == COLL_OK);
            CHECK(x.front() == 6 && x.back() == 6);
          }
        }
      }
    }
    coll_choice now{};
    now.size = sizeof now;
    std::int32_t tuned = 0;
    CHECK(coll_chosen(comm, COLL_ALLREDUCE, 1 << 20, 0, &now, &tuned) == COLL_OK);
    CHECK(tuned == 1 && now.algorithm == number("binomial_tree") && now.lag == 2);
    CHECK(coll_tune(comm, nullptr, 0) == COLL_OK);
    CHECK(coll_chosen(comm, COLL_ALLREDUCE, 1 << 20, 0, &now, &tuned) == COLL_OK);
    CHECK(tuned == 0 && now.algorithm != number("binomial_tree"));
  });
  for (coll_comm* comm : comms) CHECK(coll_close(comm) == COLL_OK);
}

TEST(ranks_with_different_tables_learn_of_it) {
  for (const bool same_algorithm : {true, false}) {
    const auto comms = threads(2);
    run_ranks(2, [&](int rank) {
      coll_comm* comm = comms[static_cast<std::size_t>(rank)];
      const char* name = same_algorithm || rank == 0 ? "ring" : "circulant";
      const coll_choice lines[] = {choice_of(name, 0, COLL_MODE_STAGED, rank, 0)};
      CHECK(coll_tune(comm, lines, 1) == COLL_OK);
      std::vector<double> x(1000, 1.0);
      CHECK(sum(comm, x) == COLL_MISMATCH);
      const std::string text = coll_last_error();
      CHECK(text.find("by a table or wish") != std::string::npos);
    });
    for (coll_comm* comm : comms) coll_close(comm);
  }
}

TEST(algorithms_that_are_wished_for) {
  const std::vector<TunedLine> lines = forced_lines("allreduce:ring,broadcast:chain", 3, false);
  const Tuned tuned(3, false, 2, lines);
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{1} << 20}) {
    for (const Placement placement : {Placement::near, Placement::far}) {
      CHECK(tuned.find(Kind::allreduce, bytes, placement)->algorithm == number("ring"));
      CHECK(tuned.find(Kind::broadcast, bytes, placement)->algorithm ==
            number("chain", Kind::broadcast));
    }
  }
  CHECK(tuned.find(Kind::allgather, 8, Placement::near) == nullptr);
  CHECK(choose(Kind::allreduce, 3, 8, {}, tuned).near.mode == Mode::inlined);
  CHECK(forced_lines("", 3, false).empty());
  // A group of three has no such algorithm: it goes its own way, but a job of three is refused.
  CHECK(forced_lines("allgather:recursive_doubling", 3, true).empty());
  CHECK(forced_lines("allgather:recursive_doubling", 4, true).size() == 2);
  CHECK(thrown<Error>([] { check_forced("allgather:recursive_doubling", 3); }).status ==
        Status::unsupported);
  // NCCL's are no plans, and may stand beside ours.
  CHECK(forced_lines("allreduce:nccl,allreduce:ring", 3, true).size() == 2);
  CHECK(forced_lines("reduce:nccl", 3, false).empty());
  check_forced("allreduce:nccl,broadcast:nccl", 3);
  for (const char* words : {"ring", "allreduce", "allreduce:", "allreduce:rong", "allsum:ring",
                            "scan:nccl", "allreduce:nccl,", "allreduce:nccl2", "allreduce:ring,",
                            ",", "allreduce:ring;broadcast:chain"}) {
    const Error error = thrown<Error>([&] { check_forced(words, 4); });
    CHECK(error.status == Status::invalid_argument);
    CHECK(std::string(error.what()).find("COLLECTIVES_ALGORITHM") != std::string::npos);
  }
}

// SPDX-License-Identifier: Apache-2.0
// What is said of an algorithm whose schedules are wrong, or that fails itself: which one, for how
// many ranks, and where.
#include "prove/wrong_schedule.h"

#include <stdexcept>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "base/error.h"
#include "check.h"
#include "plan/lower.h"
#include "plan/messages.h"

using namespace coll;

namespace {

Algorithm made_up(void (*generate)(Builder& b)) {
  return {.kind = Kind::allreduce,
          .name = "star",
          .paper = "",
          .summary = "",
          .rounds = "",
          .bytes = "",
          .reductions = "",
          .restriction = "",
          .tree = {},
          .fits = any_p,
          .chunks = one_chunk,
          .generate = generate};
}

// Rank 0 folds all but the last rank's operand, and hands the sum out to all but the last.
void forgets_the_last(Builder& b) {
  if (b.rank() != 0) {
    b.send(0, 0, b.all());
    b.recv(1, 0, b.all());
    return;
  }
  b.recv_reduce(0, std::vector{kSelf, 1}, b.all());
  b.send(1, std::vector{1}, b.all());
}

// All send, and nobody receives.
void only_sends(Builder& b) { b.send(0, (b.rank() + 1) % b.p(), b.all()); }

void sends_to_nobody(Builder& b) { b.send(0, b.p(), b.all()); }

void keeps_its_own(Builder& b) { static_cast<void>(b); }

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// What is said where it is lowered in this mode.
std::string said_of(void (*generate)(Builder& b), Mode mode) {
  const Schedule schedule = make_schedule(made_up(generate), 3);
  const Error error = thrown<Error>(
      [&] { blaming(schedule, "star", [&] { return lower(schedule, {.mode = mode}); }); });
  CHECK(error.status == Status::internal);
  return error.what();
}

TEST(a_message_that_nobody_receives_is_named) {
  const std::string who = "the schedule of allreduce star for 3 ranks does not prove: ";
  for (const Mode mode : {Mode::staged, Mode::inlined, Mode::pull, Mode::push}) {
    CHECK(said_of(forgets_the_last, mode) ==
          who +
              "rank 2, step 0 (round 0, send to 0): rank 0 does not receive it in round 0: "
              "chunk 0");
    CHECK(contains(said_of(only_sends, mode), who + "rank "));
    CHECK(contains(said_of(only_sends, mode), "does not receive it in round 0: chunk 0"));
    CHECK(contains(said_of(sends_to_nobody, mode), "a peer is not a rank"));
  }
}

TEST(a_send_without_a_receive_is_not_matched) {
  const Error error = thrown<Error>([] { match(make_schedule(made_up(only_sends), 3)); });
  CHECK(contains(error.what(), "a send without its receive"));
}

TEST(what_is_right_and_fails_otherwise_says_so_itself) {
  const Schedule right = make_schedule(allreduce_ring, 3);
  const auto fails = [] { throw Error(Status::internal, "the plan is wrong"); };
  CHECK(std::string(thrown<Error>([&] { blaming(right, "ring", fails); }).what()) ==
        "the plan is wrong");
  const Schedule wrong = make_schedule(made_up(keeps_its_own), 3);
  CHECK(contains(thrown<Error>([&] { blaming(wrong, "star", fails); }).what(),
                 "allreduce star for 3 ranks does not prove: rank 0, at the end"));
  const auto full = [] { throw std::bad_alloc(); };
  thrown<std::bad_alloc>([&] { blaming(wrong, "star", full); });
}

TEST(what_an_algorithm_throws_is_told_with_its_name) {
  const Algorithm throws =
      made_up([](Builder&) { throw std::length_error("cannot create std::vector"); });
  const Error error = thrown<Error>([&] { make_schedule(throws, 1); });
  CHECK(error.status == Status::internal);
  CHECK(std::string(error.what()) ==
        "allreduce star for 1 rank, rank 0: cannot create std::vector");
  const Algorithm goes_back = made_up([](Builder& b) {
    b.send(1, (b.rank() + 1) % b.p(), b.all());
    b.send(0, (b.rank() + 1) % b.p(), b.all());
  });
  CHECK(contains(thrown<Error>([&] { make_schedule(goes_back, 2); }).what(),
                 "allreduce star for 2 ranks, rank 0: "));
}

TEST(a_schedule_that_would_fill_the_memory_is_refused) {
  const Error error = thrown<Error>([] { make_schedule(allreduce_ring, 50000); });
  CHECK(error.status == Status::unsupported);
  CHECK(contains(error.what(), "allreduce ring for 50000 ranks has too many steps"));
}

}  // namespace

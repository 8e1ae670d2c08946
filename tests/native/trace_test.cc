// SPDX-License-Identifier: Apache-2.0
// What calls tell of their times, steps and waits, and that they do so only where it is wanted.
#include <atomic>
#include <string>
#include <vector>

#include "check.h"
#include "collectives.h"
#include "counted_allocations.h"

namespace {

std::vector<coll_comm*> team(int ranks) {
  coll_options options{};
  options.size = sizeof(options);
  options.ranks = ranks;
  options.timeout = 60;
  std::vector<coll_comm*> comms(static_cast<std::size_t>(ranks));
  CHECK(coll_local(&options, comms.data()) == COLL_OK);
  return comms;
}

void close_all(const std::vector<coll_comm*>& comms) {
  for (coll_comm* comm : comms) CHECK(coll_close(comm) == COLL_OK);
}

coll_last_call last_of(coll_comm* comm) {
  coll_last_call last{};
  last.size = sizeof(last);
  CHECK(coll_last(comm, &last) == COLL_OK);
  return last;
}

void sum(coll_comm* comm, std::size_t count) {
  std::vector<double> x(count, 1.0);
  CHECK(coll_allreduce(comm, x.data(), x.data(), count, COLL_FLOAT64, COLL_SUM) == COLL_OK);
}

struct Recorded {
  std::vector<coll_trace_event> events;
  std::uint64_t dropped = 0;
};

Recorded recorded(coll_comm* comm) {
  Recorded found;
  std::size_t count = 0;
  CHECK(coll_trace_read(comm, nullptr, 0, &count, &found.dropped) == COLL_OK);
  found.events.resize(count);
  if (count == 0) return found;
  CHECK(coll_trace_read(comm, found.events.data(), count, &count, &found.dropped) == COLL_OK);
  return found;
}

// Steps and waits lie within the call before them.
void check_order(const std::vector<coll_trace_event>& events) {
  const coll_trace_event* around = nullptr;
  for (const coll_trace_event& event : events) {
    if (event.what == COLL_TRACE_OPERATION || event.what == COLL_TRACE_MESSAGE) around = &event;
    CHECK(around != nullptr);
    CHECK(around->begin <= event.begin && event.begin <= event.end && event.end <= around->end);
    CHECK(event.call == around->call);
  }
}

TEST(times_are_told_to_those_who_want_them) {
  const auto comms = team(2);
  CHECK(last_of(comms[0]).kind == -1);
  run_ranks(2, [&](int rank) {
    coll_comm* comm = comms[static_cast<std::size_t>(rank)];
    sum(comm, 10);
    const coll_last_call untold = last_of(comm);
    CHECK(untold.kind == COLL_ALLREDUCE && untold.bytes == 80 && untold.number == 1);
    CHECK(untold.seconds == 0 && untold.waiting == 0);
    CHECK(coll_tell_times(comm, COLL_TIMES_OF_LARGE) == COLL_OK);
    sum(comm, 10);
    CHECK(last_of(comm).seconds == 0);
    sum(comm, 20000);
    CHECK(last_of(comm).seconds > 0);
    CHECK(coll_tell_times(comm, COLL_TIMES_OF_ALL) == COLL_OK);
    sum(comm, 10);
    CHECK(last_of(comm).seconds > 0);
    CHECK(coll_tell_times(comm, 7) == COLL_INVALID_ARGUMENT);
    CHECK(coll_tell_times(comm, COLL_TIMES_OF_NONE) == COLL_OK);
    sum(comm, 10);
    CHECK(last_of(comm).seconds == 0 && last_of(comm).number == 5);
  });
  close_all(comms);
}

TEST(a_call_that_was_refused_is_not_told) {
  const auto comms = team(1);
  sum(comms[0], 3000);
  CHECK(last_of(comms[0]).bytes == 24000);
  CHECK(coll_collective(comms[0], COLL_ALLREDUCE, nullptr, nullptr, 2000, COLL_FLOAT64, COLL_SUM, 0,
                        -1, -1, 0) == COLL_INVALID_ARGUMENT);
  CHECK(last_of(comms[0]).bytes == 24000);
  coll_last_call small{};
  small.size = 4;
  CHECK(coll_last(comms[0], &small) == COLL_INVALID_ARGUMENT);
  close_all(comms);
}

TEST(a_trace_is_read_while_the_ranks_go_on) {
  constexpr int kCalls = 200;
  const auto comms = team(3);
  std::atomic<int> done{0};
  for (coll_comm* comm : comms) CHECK(coll_trace_begin(comm, 1 << 14) == COLL_OK);
  run_ranks(4, [&](int rank) {
    if (rank < 3) {
      for (int i = 0; i < kCalls; ++i)
        sum(comms[static_cast<std::size_t>(rank)], static_cast<std::size_t>(1 + 37 * i));
      ++done;
      return;
    }
    while (done < 3) check_order(recorded(comms[1]).events);
  });
  for (coll_comm* comm : comms) {
    CHECK(coll_trace_end(comm) == COLL_OK);
    const Recorded found = recorded(comm);
    check_order(found.events);
    int calls = 0, steps = 0;
    for (const coll_trace_event& event : found.events) {
      calls += event.what == COLL_TRACE_OPERATION ? 1 : 0;
      steps += event.what == COLL_TRACE_STEP ? 1 : 0;
    }
    CHECK(calls == kCalls && steps >= kCalls && found.dropped == 0);
  }
  run_ranks(3, [&](int rank) { sum(comms[static_cast<std::size_t>(rank)], 5); });
  for (coll_comm* comm : comms) {
    CHECK(recorded(comm).events.back().bytes != 40);  // it is over
  }
  close_all(comms);
}

TEST(what_finds_no_room_is_counted) {
  const auto comms = team(2);
  for (coll_comm* comm : comms) CHECK(coll_trace_begin(comm, 3) == COLL_OK);
  run_ranks(2, [&](int rank) {
    for (int i = 0; i < 4; ++i) sum(comms[static_cast<std::size_t>(rank)], 8);
  });
  for (coll_comm* comm : comms) {
    const Recorded found = recorded(comm);
    CHECK(found.events.size() == 3 && found.dropped >= 3);
    CHECK(found.events.front().what == COLL_TRACE_OPERATION);
    check_order(found.events);
  }
  close_all(comms);
}

TEST(a_second_trace_is_refused_until_the_first_is_over) {
  const auto comms = team(1);
  CHECK(coll_trace_begin(comms[0], 10) == COLL_OK);
  CHECK(coll_trace_begin(comms[0], 10) == COLL_INVALID_ARGUMENT);
  CHECK(std::string(coll_last_error()).find("end that first") != std::string::npos);
  sum(comms[0], 4);
  CHECK(coll_trace_end(comms[0]) == COLL_OK);
  CHECK(!recorded(comms[0]).events.empty());
  CHECK(coll_trace_begin(comms[0], 10) == COLL_OK);
  CHECK(recorded(comms[0]).events.empty());
  CHECK(coll_trace_begin(comms[0], std::size_t{1} << 40) == COLL_INVALID_ARGUMENT);
  close_all(comms);
}

TEST(a_call_that_is_recorded_allocates_nothing) {
  const auto comms = team(2);
  for (coll_comm* comm : comms) CHECK(coll_trace_begin(comm, 1 << 12) == COLL_OK);
  std::atomic<long> before{0}, after{0};
  run_ranks(2, [&](int rank) {
    coll_comm* comm = comms[static_cast<std::size_t>(rank)];
    std::vector<double> x(4, 1.0);
    const auto fifty_calls = [&] {
      for (int i = 0; i < 50; ++i) {
        CHECK(coll_allreduce(comm, x.data(), x.data(), 4, COLL_FLOAT64, COLL_SUM) == COLL_OK);
      }
      CHECK(coll_barrier(comm) == COLL_OK);
    };
    fifty_calls();
    if (rank == 0) before = allocations.load();
    fifty_calls();
    if (rank == 0) after = allocations.load();
    CHECK(coll_barrier(comm) == COLL_OK);
  });
  CHECK(before.load() > 0 && after == before);
  for (coll_comm* comm : comms) CHECK(recorded(comm).events.size() > 200);
  close_all(comms);
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// Random programs of messages and collectives, all of which can go on: none is told that its ranks
// wait for each other, however late some of them are. Runs under ThreadSanitizer as well.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "child.h"
#include "instrumented.h"
#include "pairwise_of_test.h"

namespace {

using namespace coll::testing;

// What one rank sends another, or all do together.
struct Event {
  int from, to;  // -1: a collective
  std::size_t n;
  coll_kind kind;
  int root;
};

std::vector<Event> events_of(std::mt19937& dice, int p) {
  constexpr int kKinds = COLL_EXSCAN + 1;
  std::vector<Event> events(4 + dice() % 12);
  for (Event& event : events) {
    const int from = static_cast<int>(dice() % static_cast<unsigned>(p));
    const int to = static_cast<int>(dice() % static_cast<unsigned>(p));
    const bool collective = dice() % 3 == 0;
    const std::size_t n = dice() % 3 == 0 ? 100000 : dice() % 50;
    event = {collective ? -1 : from, to, n, static_cast<coll_kind>(dice() % kKinds), from};
  }
  return events;
}

// One rank of a program. All make its events in one order, so whoever waits does so for what others
// do before they wait for what comes behind it.
class Rank {
 public:
  Rank(coll_comm* comm, unsigned seed)
      : comm_(comm), rank_(coll_rank(comm)), p_(coll_ranks(comm)), dice_(seed) {}

  void make(const std::vector<Event>& events) {
    for (std::size_t i = 0; i < events.size(); ++i) {
      const Event& event = events[i];
      const int tag = static_cast<int>(i);
      if (dice_() % 8 == 0) check::nap(static_cast<int>(dice_() % 70));
      if (event.from < 0) meet(event);
      if (event.from == rank_) send_on(event, tag);
      if (event.from >= 0 && event.to == rank_) receive_on(event, tag);
      if (dice_() % 4 == 0) settle();
    }
    settle();
    expect_ok(coll_barrier(comm_));
  }

 private:
  struct Message {
    std::vector<std::int32_t> x, expected;
    coll_request request = 0;
  };

  void meet(const Event& event) {
    const std::size_t n = event.kind == COLL_BARRIER ? 0 : event.n * static_cast<std::size_t>(p_);
    const std::vector<std::int32_t> in(n * static_cast<std::size_t>(p_), 1);
    std::vector<std::int32_t> out(in.size());
    expect_ok(coll_collective(comm_, event.kind, in.data(), out.data(), n, COLL_INT32, COLL_SUM,
                              event.root, -1, -1, 0));
  }
  Message& post(const Event& event, bool sends) {
    const std::vector<std::int32_t> letter = filled(event.n, event.from);
    messages_.push_back(std::make_unique<Message>());
    *messages_.back() = {sends ? letter : std::vector<std::int32_t>(event.n), letter, 0};
    return *messages_.back();
  }
  void send_on(const Event& event, int tag) {
    Message& out = post(event, true);
    expect_ok(coll_isend(comm_, out.x.data(), event.n, COLL_INT32, event.to, tag, &out.request));
  }
  void receive_on(const Event& event, int tag) {
    const int source = dice_() % 2 == 0 ? -1 : event.from;
    if (dice_() % 2 == 0) {
      CHECK(receive(comm_, event.n, source, tag) == filled(event.n, event.from));
      return;
    }
    Message& in = post(event, false);
    expect_ok(coll_irecv(comm_, in.x.data(), event.n, COLL_INT32, source, tag, &in.request));
  }
  void settle() {
    for (const auto& message : messages_) {
      expect_ok(coll_wait(comm_, message->request, nullptr, 0));
      CHECK(message->x == message->expected);
    }
    messages_.clear();
  }

  coll_comm* comm_;
  int rank_, p_;
  std::mt19937 dice_;
  std::vector<std::unique_ptr<Message>> messages_;
};

void make_program(unsigned seed, Where where) {
  std::mt19937 dice(seed);
  const int p = 2 + static_cast<int>(dice() % 3);
  const std::vector<Event> events = events_of(dice, p);
  const Comms comms(p, false, where);
  run_ranks(p, [&](int rank) { Rank(comms[rank], seed * 7 + rank).make(events); });
}

// Most of their time they sleep, so several are under way at once.
void make_programs(unsigned programs, Where where) {
  const char* const wanted = std::getenv("COLLECTIVES_SEED");
  const unsigned first = wanted != nullptr ? static_cast<unsigned>(std::atoi(wanted)) : 1;
  std::atomic<unsigned> next{first};
  run_ranks(4, [&](int) {
    for (unsigned seed = next++; seed < first + programs; seed = next++) {
      try {
        make_program(seed, where);
      } catch (const std::exception& error) {
        check::fail("seed " + std::to_string(seed) + ": " + error.what());
      }
    }
  });
}

TEST(none_of_one_machine_is_told_of_a_deadlock) {
  make_programs(check::kShort ? 30 : 400, Where::one_machine);
}

}  // namespace

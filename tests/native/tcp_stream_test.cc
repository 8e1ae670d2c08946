// SPDX-License-Identifier: Apache-2.0
// One stream at work: right bytes in the right order, however the kernel cuts them.
#include "transport/tcp_stream.h"

#include <cerrno>

#include "tcp_of_test.h"

namespace {

using namespace coll;
using namespace coll::testing;

TEST(messages_arrive_as_they_were) {
  Pair pair;
  exchange(pair, 1, 120, 21);
}

TEST(messages_arrive_through_narrow_buffers) {
  TcpOptions options;
  options.send_buffer = options.receive_buffer = 4096;
  TcpLimits limits;
  limits.queue = 3;
  Pair pair(options, limits);
  exchange(pair, 2, 60, 17);
}

TEST(messages_arrive_however_they_are_cut) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    Pair pair;
    faults::disturb_at_random(seed);
    exchange(pair, seed, 30, 16);
    const std::uint64_t fired = faults::fired();
    faults::clear();
    CHECK(fired > 20);
  }
}

TEST(completion_counts_what_is_with_the_kernel) {
  TcpOptions options;
  options.send_buffer = options.receive_buffer = 4096;
  Pair pair(options);
  CHECK(pair.a.say(8) && pair.a.say(4U << 20U) && pair.a.say(8));
  CHECK(pair.a.stream.posted() == 3 && pair.a.stream.sent() == 0);
  CHECK(pair.a.stream.progress() > 0);
  CHECK(pair.a.stream.sent() == 1);
  CHECK((pair.a.stream.interest() & POLLOUT) != 0);
  CHECK(pair.turn_until([&] { return pair.all_heard(); }));
  CHECK(pair.a.stream.sent() == 3);
  CHECK(pair.a.stream.interest() == POLLIN);
  pair.b.check_heard(pair.a);
}

TEST(a_full_queue_and_a_long_message_are_refused) {
  TcpLimits limits;
  limits.queue = 4;
  limits.payload = 1000;
  Pair pair(TcpOptions{}, limits);
  CHECK(!pair.a.say(1001));
  for (int i = 0; i < 4; ++i) CHECK(pair.a.say(1000));
  CHECK(!pair.a.say(0));
  CHECK(pair.turn_until([&] { return pair.all_heard(); }));
  CHECK(pair.a.say(0));
}

TEST(a_budget_bounds_a_turn) {
  TcpLimits limits;
  limits.queue = 256;
  Pair pair(TcpOptions{}, limits);
  for (int i = 0; i < 256; ++i) CHECK(pair.a.say(100));
  const std::size_t moved = pair.a.stream.progress(1);
  CHECK(moved > 0 && moved < std::size_t{32} * 132);
  CHECK(!pair.a.all_sent());
  CHECK(pair.turn_until([&] { return pair.all_heard(); }));
  pair.b.check_heard(pair.a);
}

// ---- back-pressure -----------------------------------------------------------------------------

TEST(what_has_no_place_waits_with_the_peer) {
  Pair pair;
  pair.b.book.hold_at = 2;
  for (const std::size_t bytes : {10, 20, 3'000'000, 40}) CHECK(pair.a.say(bytes));
  pair.turn_until([] { return false; }, 300);
  CHECK(pair.b.book.pages.size() == 2 && pair.b.stream.held_back());
  CHECK(pair.b.stream.interest() == 0 && pair.b.stream.watched());
  CHECK(pair.b.say(7));  // it can talk meanwhile
  CHECK(pair.turn_until([&] { return pair.a.book.pages.size() == 1; }));
  pair.b.book.hold_at = SIZE_MAX;
  CHECK(pair.turn_until([&] { return pair.all_heard(); }));
  pair.b.check_heard(pair.a);
  pair.a.check_heard(pair.b);
}

// It may have come as a whole long before: who drives the stream must not sleep then.
TEST(a_message_that_finds_its_place_has_moved) {
  Pair pair;
  pair.b.book.hold_at = 0;
  CHECK(pair.a.say(10) && pair.turn_until([&] { return pair.b.stream.held_back(); }));
  CHECK(pair.b.stream.progress() == 0);
  pair.b.book.hold_at = SIZE_MAX;
  CHECK(pair.b.stream.progress() > 0 && pair.b.book.pages.size() == 1);
  CHECK(pair.b.stream.progress() == 0);
}

// More than all buffers between them hold, both ways, before either receives.
TEST(both_send_much_before_either_receives) {
  constexpr std::size_t kMuch = std::size_t{64} << 20U;
  Pair pair;
  pair.a.book.hold_at = pair.b.book.hold_at = 0;
  CHECK(pair.a.say(kMuch) && pair.b.say(kMuch));
  pair.turn_until([] { return false; }, 200);
  CHECK(!pair.a.all_sent() && !pair.b.all_sent());
  CHECK(pair.a.stream.held_back() && pair.b.stream.held_back());
  pair.a.book.hold_at = pair.b.book.hold_at = SIZE_MAX;
  CHECK(pair.turn_until([&] { return pair.all_heard(); }));
  pair.a.check_heard(pair.b);
  pair.b.check_heard(pair.a);
}

// ---- every system call fails in turn -----------------------------------------------------------

// Some messages both ways under `fault`. Returns whether it went as if there was none.
bool untouched(const faults::Fault& fault) {
  const int before = check::descriptors();
  bool fired = false, lost = false;
  {
    Pair pair;
    for (const std::size_t bytes : {0, 8, 9000, 300'000, 1}) CHECK(pair.a.say(bytes));
    for (const std::size_t bytes : {100'000, 5}) CHECK(pair.b.say(bytes));
    pair.a.stream.finish();
    faults::arm(fault);
    const auto is_lost = [](const Side& side) { return side.stream.state() != StreamState::open; };
    CHECK(pair.turn_until([&] { return pair.all_heard() || is_lost(pair.a) || is_lost(pair.b); }));
    fired = faults::fired() > 0;
    faults::clear();
    lost = !pair.all_heard();
    pair.a.check_heard(pair.b);
    pair.b.check_heard(pair.a);
    for (const Side* side : {&pair.a, &pair.b}) {
      if (side->stream.state() != StreamState::failed) continue;
      CHECK(says(side->stream.why(), side->stream.peer().text()));
      CHECK(says(side->stream.why(), "EIO"));
    }
  }
  CHECK(check::descriptors() == before);
  CHECK(fired || !lost);
  return !fired;
}

TEST(the_nth_call_of_an_exchange_fails) {
  std::uint64_t n = 1;
  while (!untouched({SystemCall::any, n, EIO, false})) CHECK(++n < 500);
  CHECK(n > 5);
}

}  // namespace

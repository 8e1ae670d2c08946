// SPDX-License-Identifier: Apache-2.0
// What ranks with UCX say beside it: greetings, leaves, and what is neither. Runs without UCX.
#include <cerrno>
#include <optional>
#include <vector>

#include "tcp_of_test.h"
#include "ucx/hail.h"

namespace {

using namespace coll;
using namespace coll::testing;

std::vector<std::byte> address_of(std::size_t bytes) {
  std::vector<std::byte> address(bytes);
  for (std::size_t i = 0; i < bytes; ++i) address[i] = static_cast<std::byte>(i * 7);
  return address;
}

struct Pair {
  explicit Pair(Ends ends) : a(std::move(ends.a.fd)), b(std::move(ends.b.fd)) {}
  template <class Done>
  bool until(Done done) {
    for (int i = 0; i < 10'000; ++i) {
      a.step();
      b.step();
      if (done()) return true;
      ::usleep(20);
    }
    return false;
  }
  UcxHail a, b;
};

void check_greeting(Pair& pair, std::size_t bytes) {
  const std::vector<std::byte> here = address_of(bytes), there = address_of(3);
  pair.a.greet(11, here);
  pair.b.greet(12, there);
  CHECK(pair.until([&] { return pair.a.greeted() && pair.b.greeted(); }));
  CHECK(pair.b.token() == 11 && pair.b.address() == here);
  CHECK(pair.a.token() == 12 && pair.a.address() == there);
  CHECK(pair.a.all_said() && !pair.a.leaves_after() && !pair.a.over() && !pair.a.strange());
}

TEST(both_learn_where_the_other_is) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{500}, std::size_t{1} << 16U}) {
    Pair pair(connected());
    check_greeting(pair, bytes);
  }
}

TEST(greetings_may_come_in_pieces) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Ends ends = connected();
    faults::disturb_at_random(seed);
    Pair pair(std::move(ends));
    check_greeting(pair, 300);
    faults::clear();
  }
}

TEST(a_leave_is_heard_before_the_end) {
  Ends ends = connected();
  UcxHail b(std::move(ends.b.fd));
  {
    UcxHail a(std::move(ends.a.fd));
    a.greet(1, address_of(9));
    a.say_leave(77);
    a.step();
    CHECK(a.all_said());
  }
  for (int i = 0; i < 10'000 && !b.over(); ++i) b.step();
  CHECK(b.over() && b.error() == 0 && b.greeted());
  CHECK(b.leaves_after() == std::optional<std::uint64_t>(77));
}

TEST(an_end_without_a_word_is_no_leave) {
  for (const bool cut : {false, true}) {
    Pair pair(connected());
    check_greeting(pair, 8);
    if (cut) {
      pair.a.cut();
    } else {
      const UcxHail gone = std::move(pair.a);
    }
    for (int i = 0; i < 10'000 && !pair.b.over(); ++i) {
      pair.b.step();
      ::usleep(20);
    }
    CHECK(pair.b.over() && !pair.b.leaves_after());
    CHECK(pair.b.error() == (cut ? ECONNRESET : 0));
  }
}

// What a peer sends that does not keep to the protocol: `words` of 64 bits.
bool is_strange(const std::vector<std::uint64_t>& words) {
  Ends ends = connected();
  UcxHail hail(std::move(ends.b.fd));
  CHECK(::write(ends.a.fd.get(), words.data(), words.size() * 8) ==
        static_cast<ssize_t>(words.size() * 8));
  for (int i = 0; i < 2'000 && !hail.strange() && !hail.leaves_after(); ++i) {
    hail.step();
    ::usleep(20);
  }
  return hail.strange();
}

TEST(what_is_not_due_is_strange) {
  constexpr std::uint64_t kGreeting = 0x3178637568434c43, kLeave = 0x3178637562434c43;
  const std::uint64_t address = 5;
  CHECK(is_strange({0xC501, 8, 0}));                   // a message of a TCP stream, say
  CHECK(is_strange({kGreeting, 0, 1}));                // nowhere
  CHECK(is_strange({kGreeting, (1U << 16U) + 1, 1}));  // nothing is allocated for it
  CHECK(is_strange({kGreeting, ~std::uint64_t{0}, 1}));
  CHECK(is_strange({kLeave, 3, 0}));  // before it has come
  CHECK(is_strange({kGreeting, 8, 1, address, kGreeting, 8, 1, address}));
  CHECK(!is_strange({kGreeting, 8, 1, address, kLeave, 3, 0}));
}

}  // namespace

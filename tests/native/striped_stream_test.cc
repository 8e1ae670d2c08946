// SPDX-License-Identifier: Apache-2.0
// One stream over several connections: right bytes in the right order, whichever lane is ahead; and
// what becomes of it where a lane ends.
#include "transport/striped_stream.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "counted_allocations.h"
#include "tcp_of_test.h"

namespace {

using namespace coll;
using namespace coll::testing;

constexpr std::uint64_t kCut = StripedStream::kWhole + 1;  // bytes of a message with parts

TcpHeader plain_header(std::uint32_t n, std::size_t bytes) {
  TcpHeader header = coll::testing::header_of(n, bytes);
  header.flags = 0;
  return header;
}

struct StripedSide {
  StripedSide(std::vector<Connection> lanes, std::uint64_t seed_of_mine, const TcpLimits& limits)
      : seed(seed_of_mine), stream(std::move(lanes), book, limits) {}

  bool say(std::size_t bytes) {
    const auto n = static_cast<std::uint32_t>(said.size());
    said.push_back(payload_of(seed, n, bytes));
    if (stream.post(plain_header(n, bytes), said.back().data())) return true;
    said.pop_back();
    return false;
  }
  void check_heard(const StripedSide& other) const {
    CHECK(book.pages.size() <= other.said.size());
    for (std::size_t i = 0; i < book.pages.size(); ++i) {
      CHECK(book.pages[i] == other.said[i]);
      CHECK(book.headers[i] == plain_header(static_cast<std::uint32_t>(i), other.said[i].size()));
    }
  }

  std::uint64_t seed;
  Book book;
  std::vector<Bytes> said;
  StripedStream stream;
};

struct StripedPair {
  explicit StripedPair(std::size_t lanes, const TcpLimits& limits = {})
      : StripedPair(ends_of(lanes), limits) {}

  // Turns of lanes in any order, until done(); whether that came.
  template <class Done>
  bool turn_until(Done done, unsigned seed = 1, std::size_t most = StripedStream::kNoLimit) {
    std::minstd_rand random(seed + 1);
    for (int i = 0; i < 1'000'000; ++i) {
      if (done()) return true;
      StripedStream& stream = random() % 2 == 0 ? a.stream : b.stream;
      const std::size_t budget = most == StripedStream::kNoLimit ? most : random() % most + 1;
      if (stream.lane(random() % stream.lanes()).progress(budget) == 0 && i % 8 == 0) ::usleep(20);
    }
    return done();
  }
  bool all_heard() const {
    return a.book.pages.size() == b.said.size() && b.book.pages.size() == a.said.size();
  }

  StripedSide a, b;

 private:
  struct AllEnds {
    std::vector<Connection> a, b;
  };
  static AllEnds ends_of(std::size_t lanes) {
    AllEnds all;
    for (std::size_t i = 0; i < lanes; ++i) {
      Ends ends = connected();
      all.a.push_back(std::move(ends.a));
      all.b.push_back(std::move(ends.b));
    }
    return all;
  }
  StripedPair(AllEnds ends, const TcpLimits& limits)
      : a(std::move(ends.a), 1, limits), b(std::move(ends.b), 2, limits) {}
};

// Random messages both ways at once, in any order of lanes.
void exchange_striped(std::size_t lanes, unsigned seed, int messages, int most_log2) {
  TcpLimits limits;
  limits.queue = 4;
  StripedPair pair(lanes, limits);
  std::minstd_rand random(seed + 1);
  std::vector<std::size_t> sizes;
  for (int i = 0; i < messages; ++i) sizes.push_back(random_size(random, most_log2));
  const auto say_all = [&](StripedSide& side) {
    while (side.said.size() < sizes.size() && side.say(sizes[side.said.size()])) {
    }
    return side.said.size() == sizes.size();
  };
  const auto done = [&] {
    const bool said = say_all(pair.a), answered = say_all(pair.b);
    return said && answered && pair.all_heard();
  };
  if (!pair.turn_until(done, seed, 100'000)) {
    check::fail(pair.a.stream.why() + "; " + pair.b.stream.why());
  }
  CHECK(pair.a.stream.sent() == sizes.size() && pair.b.stream.sent() == sizes.size());
  pair.a.check_heard(pair.b);
  pair.b.check_heard(pair.a);
}

TEST(messages_arrive_in_their_order_in_whichever_order_lanes_turn) {
  unsigned seed = 0;
  for (const std::size_t lanes : {1, 2, 3, 4, 16}) exchange_striped(lanes, ++seed, 60, 19);
}

TEST(messages_arrive_on_lanes_however_they_are_cut_by_the_kernel) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    faults::disturb_at_random(seed);
    exchange_striped(3, seed, 20, 19);
    const std::uint64_t fired = faults::fired();
    faults::clear();
    CHECK(fired > 20);
  }
}

TEST(parts_are_nearly_equal_and_make_the_message) {
  for (const std::size_t lanes : {2, 3, 5, 16}) {
    StripedPair pair(lanes);
    for (std::uint64_t more = 0; more <= lanes; ++more) CHECK(pair.a.say(kCut + more));
    CHECK(pair.turn_until([&] { return pair.all_heard(); }));
    pair.b.check_heard(pair.a);
  }
}

// Two small messages, of which the second is complete first, on a lane of its own.
TEST(a_message_that_comes_before_its_turn_waits) {
  StripedPair pair(2);
  CHECK(pair.a.say(10) && pair.a.say(20));
  CHECK(pair.a.stream.progress() > 0 && pair.a.stream.sent() == 2);
  PolledStream& early = pair.b.stream.lane(1);
  for (int i = 0; i < 10'000 && !early.held_back(); ++i) early.progress();
  CHECK(early.held_back() && pair.b.stream.held_back() && pair.b.book.pages.empty());
  CHECK(early.interest() == 0 && early.watched() && early.due());
  CHECK(pair.turn_until([&] { return pair.all_heard(); }));
  pair.b.check_heard(pair.a);
}

TEST(a_message_waits_for_all_parts_of_the_one_before) {
  StripedPair pair(3);
  CHECK(pair.a.say(kCut) && pair.a.say(1));
  for (int i = 0; i < 2000; ++i) {
    pair.a.stream.progress();
    pair.b.stream.lane(0).progress();
    pair.b.stream.lane(1).progress();
  }
  CHECK(pair.b.book.pages.empty() && pair.b.stream.lane(1).held_back());
  CHECK(!pair.b.stream.lane(0).due() && pair.b.stream.lane(2).due());
  CHECK(pair.turn_until([&] { return pair.all_heard(); }));
  pair.b.check_heard(pair.a);
}

// Only the lane on which something must come next is read in every turn.
TEST(a_lane_is_due_when_something_must_come_on_it) {
  StripedPair pair(3);
  const auto due = [&](std::size_t lane) { return pair.b.stream.lane(lane).due(); };
  CHECK(due(0) && !due(1) && !due(2));
  CHECK(pair.a.say(5) && pair.turn_until([&] { return pair.all_heard(); }));
  CHECK(!due(0) && due(1) && !due(2));
  pair.b.book.due = false;
  CHECK(!due(1));
}

TEST(a_full_queue_and_a_long_message_are_refused_on_lanes) {
  TcpLimits limits;
  limits.queue = 4;
  limits.payload = 2 * kCut;
  StripedPair pair(2, limits);
  CHECK(!pair.a.say(2 * kCut + 1));
  for (int i = 0; i < 4; ++i) CHECK(pair.a.say(i % 2 == 0 ? 7 : 2 * kCut));
  CHECK(!pair.a.say(0) && pair.a.stream.posted() == 4 && pair.a.stream.sent() == 0);
  CHECK(pair.turn_until([&] { return pair.all_heard(); }));
  CHECK(pair.a.say(0) && pair.turn_until([&] { return pair.all_heard(); }));
  pair.b.check_heard(pair.a);
}

// What is sent on a later lane does not count before all that was posted before it.
TEST(messages_are_sent_in_their_order) {
  StripedPair pair(2);
  for (const std::size_t bytes : {std::size_t{10}, std::size_t{20}, std::size_t{kCut}}) {
    CHECK(pair.a.say(bytes));
  }
  pair.a.stream.lane(1).progress();
  CHECK(pair.a.stream.sent() == 0 && pair.a.stream.posted() == 3);
  CHECK(pair.turn_until([&] { return pair.all_heard(); }) && pair.a.stream.sent() == 3);
}

// ---- ends --------------------------------------------------------------------------------------

TEST(one_lane_that_is_reset_is_the_end_of_all) {
  for (const std::size_t lane : {0, 1, 2}) {
    StripedPair pair(3);
    pair.a.stream.lane(lane).abandon();
    CHECK(pair.turn_until([&] { return pair.b.stream.state() != StreamState::open; }));
    CHECK(pair.b.stream.state() == StreamState::reset && !pair.b.say(1));
    CHECK(says(pair.b.stream.why(), "was reset by the peer"));
    CHECK(says(pair.b.stream.why(), "connection " + std::to_string(lane + 1) + " of 3"));
    CHECK(pair.a.stream.state() == StreamState::closed);
  }
}

// What was said on other lanes before is heard.
TEST(the_end_of_a_lane_is_none_before_something_is_due_on_it) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    StripedPair pair(3);
    CHECK(pair.a.say(kCut) && pair.a.say(8) && pair.a.say(kCut) && pair.a.say(9));
    for (std::size_t i = 0; i < 3; ++i) pair.a.stream.lane(i).finish();
    const auto over = [&] { return pair.b.stream.state() != StreamState::open; };
    CHECK(pair.turn_until(over, seed, 50'000) && pair.b.book.pages.size() == 4);
    CHECK(pair.b.stream.state() == StreamState::ended);
    CHECK(says(pair.b.stream.why(), "the peer closed it (connection "));
    pair.b.check_heard(pair.a);
  }
}

TEST(the_end_of_a_lane_on_which_something_is_due_is_the_end) {
  StripedPair pair(2);
  PolledStream& lane = pair.b.stream.lane(1);
  pair.a.stream.lane(1).finish();
  while (lane.state() == StreamState::open) lane.progress();
  CHECK(pair.b.stream.state() == StreamState::open && !pair.b.say(1));
  CHECK(pair.a.say(5));
  CHECK(pair.turn_until([&] { return pair.b.stream.state() == StreamState::ended; }));
  CHECK(pair.all_heard() && says(pair.b.stream.why(), "connection 2 of 2"));
}

TEST(a_message_of_which_a_part_never_comes_is_cut_off) {
  StripedPair pair(2);
  CHECK(pair.a.say(kCut));
  pair.a.stream.lane(0).finish();
  for (int i = 0; i < 2000; ++i) {
    pair.a.stream.lane(0).progress();
    pair.b.stream.lane(0).progress();
  }
  CHECK(pair.b.stream.state() == StreamState::open);
  ::shutdown(pair.a.stream.lane(1).fd(), SHUT_WR);
  CHECK(pair.turn_until([&] { return pair.b.stream.state() == StreamState::ended; }));
  CHECK(pair.b.book.pages.empty());
}

// ---- what no peer of ours sends -----------------------------------------------------------------

// A peer whose lanes are sockets that are written by hand.
struct Raw {
  explicit Raw(std::size_t lanes, const TcpLimits& limits = {}) {
    std::vector<Connection> mine;
    for (std::size_t i = 0; i < lanes; ++i) {
      Ends ends = connected();
      mine.push_back(std::move(ends.a));
      peer.push_back(std::move(ends.b.fd));
    }
    stream.emplace(std::move(mine), book, limits);
  }
  void say(std::size_t lane, TcpHeader header, std::uint8_t flags, std::uint64_t length) const {
    header.flags = flags;
    header.length = length;
    write_raw(peer[lane], &header, sizeof header);
    const Bytes payload(std::min<std::uint64_t>(length, 1 << 20));
    write_raw(peer[lane], payload.data(), payload.size());
  }
  // Turns until it has ended, and why.
  std::string end() {
    for (int i = 0; i < 2000 && stream->state() == StreamState::open; ++i) {
      if (stream->progress() == 0) ::usleep(50);
    }
    CHECK(stream->state() == StreamState::broken);
    return stream->why();
  }

  Book book;
  std::vector<Descriptor> peer;
  std::optional<StripedStream> stream;
};

TEST(garbage_on_any_lane_is_the_end) {
  for (const std::size_t lane : {0, 1}) {
    Raw raw(2);
    const Bytes garbage(64, std::byte{0x17});
    write_raw(raw.peer[lane], garbage.data(), garbage.size());
    CHECK(says(raw.end(), "does not begin like a message"));
    CHECK(raw.book.pages.empty());
  }
}

TEST(a_part_that_belongs_to_no_message_is_the_end) {
  const TcpHeader header = plain_header(0, 0), other = plain_header(1, 0);
  const auto refused = [&](const TcpHeader& second, std::uint8_t flags, std::uint64_t length) {
    Raw raw(2);
    raw.say(0, header, 0x81, 100);  // 199 bytes: 100 and 99
    raw.say(1, second, flags, length);
    CHECK(says(raw.end(), "not due") && raw.book.pages.empty());
  };
  refused(other, 0x81, 99);    // of another message
  refused(header, 0x81, 100);  // too long
  refused(header, 0x80, 99);   // cut in another way
  refused(header, 0, 99);      // no part
}

TEST(a_cut_that_cannot_be_is_the_end) {
  const TcpHeader header = plain_header(0, 0);
  struct Case {
    std::uint8_t flags;
    std::uint64_t length;
  };
  TcpLimits limits;
  limits.payload = 1000;
  // A mark of nobody; more shorter parts than lanes; parts of nothing; longer than is allowed.
  for (const Case& c :
       {Case{0x40, 10}, Case{0x01, 10}, Case{0x82, 10}, Case{0x80, 0}, Case{0x80, 999}}) {
    Raw raw(2, limits);
    raw.say(0, header, c.flags, c.length);
    CHECK(says(raw.end(), "not due") && raw.book.pages.empty());
  }
}

TEST(what_the_receiver_refuses_is_the_end) {
  for (const std::uint8_t kind : {Book::kRefused, Book::kMisplaced}) {
    Raw raw(2);
    TcpHeader header = plain_header(0, 0);
    header.kind = kind;
    raw.say(0, header, 0x80, 100);
    CHECK(!raw.end().empty() && raw.book.pages.empty());
  }
}

// ---- who drives it ------------------------------------------------------------------------------

void drive_all(TcpSet& set, StripedStream& stream) {
  for (std::size_t i = 0; i < stream.lanes(); ++i) set.add(stream.lane(i));
}

// A lane whose message is early must not end every sleep.
TEST(a_set_sleeps_while_a_lane_is_ahead) {
  StripedPair pair(2);
  TcpSet set(std::chrono::microseconds(0));
  drive_all(set, pair.b.stream);
  CHECK(pair.a.say(10) && pair.a.say(20));
  pair.a.stream.lane(1).progress();
  CHECK(set.run([&] { return pair.b.stream.held_back(); }, Deadline(5)) == Drive::done);
  int waits = 0;
  for (const Deadline end(0.2); !end.passed(); ++waits) CHECK(set.wait(end) == 0);
  CHECK(waits < 20);
  pair.a.stream.lane(0).progress();
  CHECK(set.run([&] { return pair.all_heard(); }, Deadline(5)) == Drive::done);
}

TEST(nothing_is_allocated_once_lanes_are_made) {
  class Fixed final : public TcpReceiver {
   public:
    Landing land(const TcpHeader& header) noexcept override {
      return {Landing::Verdict::take, std::span(place).first(header.length)};
    }
    void landed(const TcpHeader&) noexcept override { ++count; }
    int count = 0;
    Bytes place = Bytes(1U << 20U);
  };
  Fixed hears;
  Book nothing;
  std::vector<Connection> a, b;
  for (int i = 0; i < 3; ++i) {
    Ends ends = connected();
    a.push_back(std::move(ends.a));
    b.push_back(std::move(ends.b));
  }
  StripedStream from(std::move(a), nothing), to(std::move(b), hears);
  TcpSet set;
  drive_all(set, from);
  drive_all(set, to);
  const Bytes payload(1U << 20U);
  const long before = allocations;
  int said = 0;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, payload.size()}) {
    for (int i = 0; i < 20; ++i, ++said) CHECK(from.post(plain_header(1, bytes), payload.data()));
    CHECK(set.run([&] { return hears.count == said; }, Deadline(20)) == Drive::done);
  }
  CHECK(allocations == before);
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// How two ends of a connection agree on memory, or on none.
#include "bootstrap/pipe_meeting.h"

#include <cerrno>

#include "tcp_of_test.h"

namespace {

using namespace coll;
using namespace coll::testing;

struct Met {
  explicit Met(Ends ends) : a(std::move(ends.a), true), b(std::move(ends.b), false) {}
  // Whether both come to an end.
  bool meet() {
    for (int i = 0; i < 10'000; ++i) {
      const bool one = a.step(), other = b.step();
      if (one && other) return true;
      ::usleep(20);
    }
    return false;
  }
  PipeMeeting a, b;
};

// Bytes go from one end to the other, whatever was agreed upon.
void check_use(Met& met, bool through_memory) {
  auto pipe_a = met.a.take_pipe(), pipe_b = met.b.take_pipe();
  CHECK((pipe_a != nullptr) == through_memory && (pipe_b != nullptr) == through_memory);
  Side a(met.a.take_connection(), 1, {}, std::move(pipe_a));
  Side b(met.b.take_connection(), 2, {}, std::move(pipe_b));
  CHECK(a.say(50'000) && b.say(7));
  for (int i = 0; i < 10'000 && (a.book.pages.empty() || b.book.pages.empty()); ++i) {
    a.stream.progress();
    b.stream.progress();
  }
  CHECK(a.book.pages.size() == 1 && b.book.pages.size() == 1);
  b.check_heard(a);
  a.check_heard(b);
}

TEST(both_find_the_memory) {
  const int before = check::descriptors();
  {
    Met met(connected());
    CHECK(met.meet());
    check_use(met, true);
  }
  CHECK(check::descriptors() == before);
}

TEST(whoever_cannot_make_or_open_it_says_so) {
  for (const SystemCall call : {SystemCall::memfd_create, SystemCall::open, SystemCall::fstat,
                                SystemCall::mmap, SystemCall::fcntl, SystemCall::fallocate}) {
    for (const std::uint64_t nth : {1, 2}) {
      Ends ends = connected();
      faults::arm({call, nth, EACCES, false});
      Met met(std::move(ends));
      CHECK(met.meet());
      const bool fired = faults::fired() > 0;
      faults::clear();
      check_use(met, !fired);
    }
  }
}

TEST(words_may_come_in_pieces) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Ends ends = connected();
    faults::disturb_at_random(seed);
    Met met(std::move(ends));
    const bool over = met.meet();
    faults::clear();
    CHECK(over);
    check_use(met, true);
  }
}

TEST(a_peer_that_goes_is_left_to_the_stream) {
  Ends ends = connected();
  PipeMeeting meeting(std::move(ends.a), true);
  CHECK(!meeting.step());
  ends.b.fd.reset();
  for (int i = 0; i < 1000 && !meeting.step(); ++i) ::usleep(100);
  CHECK(meeting.step() && meeting.take_pipe() == nullptr);
  Side side(meeting.take_connection(), 1);
  for (int i = 0; i < 1000 && side.stream.state() == StreamState::open; ++i) side.stream.progress();
  CHECK(side.stream.state() != StreamState::open);
}

TEST(a_peer_that_says_something_else_gets_no_memory) {
  Ends ends = connected();
  PipeMeeting meeting(std::move(ends.a), false);
  const Bytes garbage(32, std::byte{0x41});
  write_raw(ends.b.fd, garbage.data(), garbage.size());
  for (int i = 0; i < 1000 && !meeting.step(); ++i) ::usleep(100);
  CHECK(meeting.step() && meeting.take_pipe() == nullptr);
}

// What a word names is opened only where it is a plain file: here it is a socket, and nothing.
TEST(what_is_named_may_be_anything) {
  for (const std::int32_t descriptor : {0, -1, 1 << 30}) {
    Ends ends = connected();
    struct {
      std::uint64_t mark;
      std::int32_t process, descriptor;
      std::array<std::uint8_t, 16> key;
    } word{0x31657069704c4c43, ::getpid(), descriptor == 0 ? ends.a.fd.get() : descriptor, {}};
    PipeMeeting meeting(std::move(ends.a), false);
    write_raw(ends.b.fd, &word, sizeof word);
    for (int i = 0; i < 1000 && !meeting.step(); ++i) ::usleep(100);
    CHECK(meeting.step() && meeting.take_pipe() == nullptr);
  }
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// Bytes of two ranks of one machine: through rings in memory, with bells on the socket.
#include "transport/local_pipe.h"

#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <thread>

#include "base/error.h"
#include "tcp_of_test.h"

namespace {

using namespace coll;
using namespace coll::testing;

// One call of write or read with one part.
std::size_t put(LocalPipe& pipe, const Bytes& data, std::size_t from, std::size_t most) {
  const std::size_t n = std::min(most, data.size() - from);
  const iovec part{const_cast<std::byte*>(data.data() + from), n};
  return pipe.write(&part, 1);
}
std::size_t get(LocalPipe& pipe, Bytes& data, std::size_t from, std::size_t most) {
  const iovec part{data.data() + from, std::min(most, data.size() - from)};
  return pipe.read(&part, 1);
}

TEST(bytes_come_out_as_they_went_in) {
  PipeEnds ends = piped();
  std::minstd_rand random(3);
  const Bytes sent = payload_of(1, 1, 3 * ByteRing::kBytes + 1234);
  Bytes got(sent.size());
  std::size_t in = 0, out = 0;
  while (out < sent.size()) {
    in += put(*ends.b, sent, in, random() % 90'000);
    CHECK(in - out <= ByteRing::kBytes);
    out += get(*ends.a, got, out, random() % 70'000);
  }
  CHECK(got == sent && !ends.a->has_bytes() && !ends.b->has_bytes());
}

TEST(a_full_ring_takes_no_more) {
  PipeEnds ends = piped();
  const Bytes much(ByteRing::kBytes + 5);
  CHECK(put(*ends.a, much, 0, much.size()) == ByteRing::kBytes);
  CHECK(put(*ends.a, much, 0, 1) == 0);
}

TEST(memory_that_is_not_the_right_one_is_refused) {
  const LocalPipe::Key key{1}, other{2};
  const auto pipe = LocalPipe::make(key);
  const auto again = [&pipe] { return Descriptor(::fcntl(pipe->fd(), F_DUPFD_CLOEXEC, 0)); };
  const Error stranger = check::thrown<Error>([&] { LocalPipe::open(again(), other); });
  CHECK(stranger.status == Status::bootstrap && says(stranger.what(), "not that of this pair"));
  const Memory small = Memory::shared(4096);
  const Error size = check::thrown<Error>(
      [&] { LocalPipe::open(Descriptor(::fcntl(small.fd(), F_DUPFD_CLOEXEC, 0)), key); });
  CHECK(size.status == Status::bootstrap && says(size.what(), "another size"));
  CHECK(LocalPipe::open(again(), key) != nullptr);
}

TEST(a_bell_is_due_once_and_for_what_is_waited_for) {
  PipeEnds ends = piped();
  const Bytes data(100), half(ByteRing::kBytes / 2);
  CHECK(!ends.a->bell_due());
  CHECK(ends.b->doze(true, false));
  CHECK(!ends.a->bell_due());  // nothing has come
  put(*ends.a, data, 0, 100);
  CHECK(ends.a->bell_due() && !ends.a->bell_due());
  CHECK(!ends.b->doze(true, false));  // there is something to read
  CHECK(!ends.a->bell_due());
  // Room: not for every byte.
  const Bytes much(ByteRing::kBytes);
  CHECK(put(*ends.a, much, 0, much.size()) == ByteRing::kBytes - 100);
  CHECK(ends.a->doze(false, true));
  Bytes got(ByteRing::kBytes);
  get(*ends.b, got, 0, 1000);
  CHECK(!ends.b->bell_due());
  get(*ends.b, got, 0, ByteRing::kBytes / 2);
  CHECK(ends.b->bell_due() && !ends.b->bell_due());
}

// ---- streams -----------------------------------------------------------------------------------

TEST(messages_arrive_through_memory) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    Pair pair(piped());
    exchange(pair, seed, 80, 20);
  }
}

TEST(what_has_no_place_waits_in_the_ring) {
  Pair pair(piped());
  pair.b.book.hold_at = 2;
  for (const std::size_t bytes : {10, 20, 3'000'000, 40}) CHECK(pair.a.say(bytes));
  pair.turn_until([] { return false; }, 300);
  CHECK(pair.b.book.pages.size() == 2 && pair.b.stream.held_back());
  CHECK(pair.b.say(7));
  CHECK(pair.turn_until([&] { return pair.a.book.pages.size() == 1; }));
  pair.b.book.hold_at = SIZE_MAX;
  CHECK(pair.turn_until([&] { return pair.all_heard(); }));
  pair.b.check_heard(pair.a);
}

// Two threads that sleep whenever nothing is there: a bell that does not ring costs 50 ms, so with
// one lost in a hundred this would take minutes.
void ping_pong(Side& side, bool begins, int rounds, std::size_t bytes) {
  TcpSet set(std::chrono::microseconds(0));
  set.add(side.stream);
  const auto n = [&side] { return static_cast<int>(side.book.pages.size()); };
  for (int i = 0; i < rounds; ++i) {
    if (begins) side.say(bytes);
    const Drive end = set.run([&] { return n() == i + 1; }, Deadline(30));
    if (end != Drive::done) check::fail("a side sleeps for ever");
    if (!begins) side.say(bytes);
  }
  set.run([&side] { return side.all_sent(); }, Deadline(5));
}

TEST(bells_wake_who_sleeps) {
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{700'000}}) {
    Pair pair(piped());
    const int rounds = bytes < 100 ? 1000 : 40;
    std::thread other([&] { ping_pong(pair.b, false, rounds, bytes); });
    ping_pong(pair.a, true, rounds, bytes);
    other.join();
    pair.a.check_heard(pair.b);
    pair.b.check_heard(pair.a);
  }
}

// ---- ends --------------------------------------------------------------------------------------

// As a set does after poll().
void look(Side& side) {
  side.stream.heed(POLLIN);
  side.stream.progress();
}

TEST(all_is_read_before_the_end_is) {
  Ends ends = connected();
  PipeEnds pipes = piped();
  Side reader(std::move(ends.a), 1, {}, std::move(pipes.a));
  {
    Side writer(std::move(ends.b), 2, {}, std::move(pipes.b));
    reader.book.hold_at = 0;
    CHECK(writer.say(1000) && writer.say(5));
    writer.stream.finish();
    writer.stream.progress();
    look(reader);
    CHECK(reader.stream.state() == StreamState::open && reader.stream.held_back());
    reader.book.hold_at = SIZE_MAX;
    look(reader);
    reader.check_heard(writer);
    CHECK(reader.book.pages.size() == 2 && reader.stream.ended_cleanly());
  }
}

TEST(an_abandoned_pipe_is_a_reset) {
  Pair pair(piped());
  CHECK(pair.a.say(100));
  pair.a.stream.progress();
  pair.a.stream.abandon();
  look(pair.b);
  pair.b.stream.progress();
  CHECK(pair.b.book.pages.size() == 1 && pair.b.stream.state() == StreamState::reset);
  CHECK(says(pair.b.stream.why(), "reset by the peer"));
}

TEST(a_process_that_is_killed_ends_the_stream) {
  Ends ends = connected();
  PipeEnds pipes = piped();
  const pid_t child = ::fork();
  if (child == 0) {
    ends.a.fd.reset();
    for (;;) ::pause();
  }
  ends.b.fd.reset();
  Side side(std::move(ends.a), 1, {}, std::move(pipes.a));
  CHECK(side.say(4 * ByteRing::kBytes));
  look(side);
  CHECK(side.stream.state() == StreamState::open);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  TcpSet set(std::chrono::microseconds(0));
  set.add(side.stream);
  CHECK(set.run([] { return false; }, Deadline(10)) == Drive::lost);
}

TEST(the_nth_call_through_memory_fails) {
  for (std::uint64_t n = 1, fired = 1; fired > 0; ++n) {
    CHECK(n < 200);
    Pair pair(piped());
    pair.a.say(300'000);
    faults::arm({SystemCall::any, n, EIO, false});
    const auto over = [&] {
      pair.a.stream.doze();
      look(pair.a);
      pair.b.stream.doze();
      look(pair.b);
      const auto open = [](const Side& s) { return s.stream.state() == StreamState::open; };
      return pair.all_heard() || !open(pair.a) || !open(pair.b);
    };
    for (int turns = 0; !over(); ++turns) CHECK(turns < 100'000);
    fired = faults::fired();
    faults::clear();
    if (fired == 0) CHECK(pair.all_heard());
    pair.b.check_heard(pair.a);
  }
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// Many streams driven by one thread, as ranks drive them: threads here, so that the thread
// sanitizer looks on.
#include "transport/tcp_set.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "instrumented.h"
#include "tcp_of_test.h"

namespace {

using namespace coll;
using namespace coll::testing;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// A full mesh over loopback: mesh[i][j] leads from rank i to rank j.
using Mesh = std::vector<std::vector<std::unique_ptr<Side>>>;
Mesh mesh_of(std::size_t p) {
  Mesh mesh(p);
  for (auto& row : mesh) row.resize(p);
  for (std::size_t i = 0; i < p; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      Ends ends = connected();
      mesh[i][j] = std::make_unique<Side>(std::move(ends.a), i * p + j);
      mesh[j][i] = std::make_unique<Side>(std::move(ends.b), j * p + i);
    }
  }
  return mesh;
}

// Rank `me` sends and receives `messages` with everybody.
void talk(Mesh& mesh, std::size_t me, int messages, microseconds spin) {
  std::minstd_rand random(static_cast<unsigned>(me + 1));
  TcpSet set(spin);
  for (auto& side : mesh[me]) {
    if (!side) continue;
    set.add(side->stream);
    for (int i = 0; i < messages; ++i) CHECK(side->say(random() % 200'000));
  }
  const auto over = [&] {
    for (const auto& side : mesh[me]) {
      if (!side) continue;
      if (!side->all_sent()) return false;
      if (side->book.pages.size() < static_cast<std::size_t>(messages)) return false;
    }
    return true;
  };
  CHECK(set.run(over, Deadline(30)) == Drive::done);
}

// Few streams are asked one by one, many are polled.
TEST(ranks_talk_all_to_all) {
  for (const std::size_t p : {4U, 12U}) {
    for (const microseconds spin : {microseconds(0), TcpSet::kSpin}) {
      Mesh mesh = mesh_of(p);
      const int messages = p == 4 ? 12 : 2;
      run_ranks(static_cast<int>(p),
                [&](int rank) { talk(mesh, static_cast<std::size_t>(rank), messages, spin); });
      for (std::size_t i = 0; i < p; ++i) {
        for (std::size_t j = 0; j < p; ++j) {
          if (i != j) mesh[i][j]->check_heard(*mesh[j][i]);
        }
      }
    }
  }
}

TEST(ranks_talk_although_signals_interrupt_and_the_network_is_busy) {
  for (unsigned seed = 0; seed < 3; ++seed) {
    Mesh mesh = mesh_of(3);
    faults::disturb_at_random(seed);
    run_ranks(3, [&](int rank) { talk(mesh, static_cast<std::size_t>(rank), 4, microseconds(0)); });
    faults::clear();
    for (std::size_t i = 1; i < 3; ++i) mesh[i][0]->check_heard(*mesh[0][i]);
  }
}

TEST(a_wait_ends_at_its_deadline_and_when_told) {
  Pair pair;
  TcpSet set;
  set.add(pair.a.stream);
  const auto begin = Deadline::Clock::now();
  CHECK(set.run([] { return false; }, Deadline(0.06)) == Drive::deadline);
  CHECK(Deadline::Clock::now() - begin >= milliseconds(60));
  int asked = 0;
  CHECK(set.run([] { return false; }, Deadline(20), [&] { return ++asked == 2; }) ==
        Drive::stopped);
  CHECK(Deadline::Clock::now() - begin < check::promised(milliseconds(2000)));
  CHECK(set.run([] { return true; }, Deadline(0)) == Drive::done);
}

int low_mark(const TcpStream& stream) {
  int bytes = 0;
  socklen_t size = sizeof bytes;
  CHECK(::getsockopt(stream.fd(), SOL_SOCKET, SO_RCVLOWAT, &bytes, &size) == 0);
  return bytes;
}

// A message of which a part has come is of no use, nor is to be woken for a little more of it.
TEST(a_sleep_lasts_until_enough_of_a_message_has_come) {
  const std::size_t whole = 100'000;
  const TcpHeader header = header_of(0, whole);
  Bytes wire = payload_of(1, 0, sizeof header + whole);
  std::memcpy(wire.data(), &header, sizeof header);
  Ends ends = connected();
  Side reader(std::move(ends.a), 2);
  TcpSet set(microseconds(0));
  set.add(reader.stream);
  std::size_t sent = 0;
  const auto send = [&](std::size_t bytes) {
    CHECK(::send(ends.b.fd.get(), wire.data() + sent, bytes, 0) == static_cast<ssize_t>(bytes));
    sent += bytes;
  };
  send(10'000);
  while (reader.stream.moved() < 10'000) set.progress();

  const auto poll_tells = [&](int milliseconds) {
    pollfd readable{reader.stream.fd(), POLLIN, 0};
    return ::poll(&readable, 1, milliseconds) == 1;
  };
  CHECK(reader.stream.doze());  // as every sleep begins
  CHECK(low_mark(reader.stream) == 64 * 1024);
  send(1'000);
  CHECK(!poll_tells(20));
  while (reader.stream.moved() < 11'000) set.wait(Deadline(0.02));  // now and then all are read

  send(60'000);
  while (reader.stream.moved() < 71'000) set.wait(Deadline(0.02));
  CHECK(reader.stream.doze());
  CHECK(low_mark(reader.stream) == static_cast<int>(wire.size() - sent));

  send(wire.size() - sent);
  CHECK(poll_tells(20'000));
  while (reader.book.pages.empty()) set.wait(Deadline(0.02));
  CHECK(reader.book.pages[0] == Bytes(wire.begin() + sizeof header, wire.end()));
  CHECK(reader.stream.doze());
  CHECK(low_mark(reader.stream) == 1);  // who knows how long the next one is
}

TEST(a_stream_of_which_nothing_is_due_is_heard_all_the_same) {
  Pair often, seldom;
  TcpSet set(microseconds(0));
  set.add(often.a.stream);
  set.add(seldom.a.stream);
  seldom.a.book.due = false;
  CHECK(often.a.stream.due() && !seldom.a.stream.due());
  CHECK(seldom.b.say(100) && seldom.b.stream.progress() > 0);
  // Also while bytes flow elsewhere all the time.
  for (int turns = 0; seldom.a.book.pages.empty(); ++turns) {
    CHECK(turns < 100 && often.b.say(8));
    often.b.stream.progress();
    set.progress();
  }
  seldom.a.check_heard(seldom.b);
  CHECK(seldom.a.say(50) && seldom.b.say(60));
  seldom.b.stream.progress();
  CHECK(set.run([&] { return seldom.a.book.pages.size() == 2 && seldom.a.all_sent(); },
                Deadline(10)) == Drive::done);
}

// An endless stream of bytes keeps nobody from being heard.
TEST(a_stop_is_asked_while_bytes_flow) {
  Pair pair;
  TcpSet set;
  set.add(pair.a.stream);
  set.add(pair.b.stream);
  Bytes payload(1000);
  const auto begin = Deadline::Clock::now();
  const Drive end = set.run(
      [&] {
        pair.a.stream.post(header_of(0, payload.size()), payload.data());
        pair.b.book.pages.clear();
        pair.b.book.headers.clear();
        return false;
      },
      Deadline(20), [] { return true; });
  CHECK(end == Drive::stopped);
  CHECK(Deadline::Clock::now() - begin < check::promised(milliseconds(2000)));
}

TEST(a_poll_that_fails_ends_the_wait) {
  Pair pair;
  TcpSet set(microseconds(0));
  set.add(pair.a.stream);
  faults::arm({SystemCall::poll, 1, ENOMEM, false});
  CHECK(set.run([] { return false; }, Deadline(5)) == Drive::failed);
  faults::clear();
  CHECK(set.error() == ENOMEM);
}

TEST(a_stream_that_is_lost_can_be_taken_out) {
  Pair lost, left;
  TcpSet set;
  set.add(lost.a.stream);
  set.add(left.a.stream);
  lost.b.stream.abandon();
  CHECK(set.run([] { return false; }, Deadline(5)) == Drive::lost);
  CHECK(set.lost() == &lost.a.stream);
  set.remove(lost.a.stream);
  CHECK(set.lost() == nullptr);
  CHECK(left.b.say(9));
  left.b.stream.progress();
  CHECK(set.run([&] { return left.a.book.pages.size() == 1; }, Deadline(5)) == Drive::done);
}

// Whoever is held back goes on as soon as there is a place, though poll() knows nothing of it.
TEST(what_was_held_back_comes_when_there_is_a_place) {
  Pair first, second;
  first.b.book.hold_at = 0;
  CHECK(first.a.say(50'000) && second.a.say(10));
  first.a.stream.progress();
  TcpSet set(microseconds(0));
  set.add(first.b.stream);
  set.add(second.b.stream);
  CHECK(set.run([&] { return first.b.stream.held_back(); }, Deadline(5)) == Drive::done);
  const auto heard = [](const Side& side) { return !side.book.pages.empty(); };
  second.a.stream.progress();
  const Drive end = set.run(
      [&] {
        if (heard(second.b)) first.b.book.hold_at = SIZE_MAX;
        return heard(first.b);
      },
      Deadline(5));
  CHECK(end == Drive::done);
  first.b.check_heard(first.a);
}

// A held stream whose peer has died must not make poll() return at once for ever.
TEST(a_dead_stream_that_is_held_back_does_not_burn_the_core) {
  Pair pair;
  pair.b.book.hold_at = 0;
  CHECK(pair.a.say(10));
  pair.a.stream.finish();
  CHECK(pair.turn_until([&] { return pair.b.stream.held_back(); }));
  pair.b.stream.finish();
  TcpSet set(microseconds(0));
  set.add(pair.b.stream);
  int turns = 0;
  CHECK(set.run([&] { return ++turns > 1000; }, Deadline(0.15)) == Drive::deadline);
  CHECK(turns < 20);
  pair.b.book.hold_at = SIZE_MAX;
  CHECK(pair.turn_until([&] { return pair.b.stream.state() != StreamState::open; }));
  CHECK(pair.b.book.pages.size() == 1 && pair.b.stream.ended_cleanly());
}

}  // namespace

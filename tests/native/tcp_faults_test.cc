// SPDX-License-Identifier: Apache-2.0
// How a stream ends: by the peer, by its death, by nonsense, by silence. Each end has a state and a
// sentence that names the peer.
#include <sched.h>

#include <cerrno>
#include <cstring>

#include "instrumented.h"
#include "loopback_of_test.h"
#include "tcp_of_test.h"

namespace {

using namespace coll;
using namespace coll::testing;
using std::chrono::milliseconds;

// Turns of one side until its stream is no longer open.
void run_to_the_end(Side& side) {
  for (int i = 0; i < 100'000 && side.stream.state() == StreamState::open; ++i) {
    if (side.stream.progress() == 0) ::usleep(50);
  }
  CHECK(side.stream.state() != StreamState::open);
  CHECK(side.stream.progress() == 0 && !side.say(1) && side.stream.interest() == 0);
  CHECK(says(side.stream.why(), side.stream.peer().text()));
}

// A stream here, a bare socket there.
struct Stranger {
  Stranger() : Stranger(connected()) {}

  void say(const void* data, std::size_t bytes) { write_raw(fd, data, bytes); }

  Side side;
  Descriptor fd;

 private:
  explicit Stranger(Ends ends) : side(std::move(ends.a), 1), fd(std::move(ends.b.fd)) {}
};

TEST(an_orderly_end_is_told_from_one_in_a_message) {
  Pair pair;
  CHECK(pair.a.say(100'000));
  pair.a.stream.finish();
  CHECK(!pair.a.say(1));
  CHECK(pair.turn_until([&] { return pair.b.stream.state() != StreamState::open; }));
  CHECK(pair.b.stream.state() == StreamState::ended && pair.b.stream.ended_cleanly());
  pair.b.check_heard(pair.a);
  CHECK(pair.b.book.pages.size() == 1);
  CHECK(says(pair.b.stream.why(), "the peer closed it"));

  for (const std::size_t cut : {1U, 31U, 32U, 40U, 10'000U}) {
    Stranger peer;
    const TcpHeader header = header_of(0, 20'000);
    std::vector<char> bytes(cut);
    std::memcpy(bytes.data(), &header, std::min(cut, sizeof header));
    peer.say(bytes.data(), cut);
    peer.fd.reset();
    run_to_the_end(peer.side);
    CHECK(peer.side.stream.state() == StreamState::ended && !peer.side.stream.ended_cleanly());
    CHECK(says(peer.side.stream.why(), "in the middle of a message"));
    CHECK(peer.side.book.pages.empty());
  }
}

TEST(a_peer_that_is_killed_is_noticed) {
  TcpListener listener(loopback(), 4);
  const check::Child child([&] {
    Connection connection = tcp_connect(listener.endpoint(), Deadline(10));
    Side side(std::move(connection), 1);
    if (!side.say(5)) throw std::runtime_error("post");
    for (;;) {
      side.stream.progress();
      ::usleep(1000);
    }
  });
  pollfd ready{listener.fd(), POLLIN, 0};
  CHECK(::poll(&ready, 1, 5000) == 1);
  Side side(listener.accept(), 2);
  TcpSet set;
  set.add(side.stream);
  CHECK(set.run([&] { return side.book.pages.size() == 1; }, Deadline(10)) == Drive::done);
  child.kill(SIGKILL);
  const auto begin = Deadline::Clock::now();
  CHECK(set.run([] { return false; }, Deadline(10)) == Drive::lost);
  CHECK(Deadline::Clock::now() - begin < check::promised(milliseconds(1000)));
  CHECK(set.lost() == &side.stream);
  const StreamState state = side.stream.state();
  CHECK(state == StreamState::ended || state == StreamState::reset);
}

TEST(a_reset_is_noticed_and_what_came_before_it_is_read) {
  Stranger peer;
  TcpHeader header = header_of(0, 3);
  peer.say(&header, sizeof header);
  peer.say("abc", 3);
  tcp_reset_on_close(peer.fd);
  peer.fd.reset();
  // The write finds the reset first, if the read does not.
  CHECK(peer.side.say(10));
  run_to_the_end(peer.side);
  CHECK(peer.side.book.pages.size() == 1);
  CHECK(peer.side.stream.state() == StreamState::reset);
  CHECK(says(peer.side.stream.why(), "ECONNRESET") || says(peer.side.stream.why(), "EPIPE"));
}

TEST(a_reset_is_noticed_by_who_is_held_back) {
  Stranger peer;
  peer.side.book.hold_at = 0;
  TcpHeader header = header_of(0, 3);
  peer.say(&header, sizeof header);
  TcpSet set;
  set.add(peer.side.stream);
  CHECK(set.run([&] { return peer.side.stream.held_back(); }, Deadline(5)) == Drive::done);
  tcp_reset_on_close(peer.fd);
  peer.fd.reset();
  CHECK(set.run([] { return false; }, Deadline(5)) == Drive::lost);
  CHECK(peer.side.stream.state() == StreamState::reset);
}

TEST(nonsense_ends_the_stream_untouched) {
  struct Case {
    TcpHeader header;
    const char* say;
  };
  TcpHeader garbage = header_of(0, 3), version = garbage, huge = garbage, most = garbage;
  garbage.mark = 'G';
  version.version = 9;
  huge.length = (1ULL << 32U) + 1;
  most.length = UINT64_MAX;
  TcpHeader refused = header_of(7, 3), misplaced = refused;
  refused.kind = Book::kRefused;
  misplaced.kind = Book::kMisplaced;
  for (const Case& c :
       {Case{garbage, "does not begin like a message of this library"}, Case{version, "version 9"},
        Case{huge, "4294967297 bytes"}, Case{most, "18446744073709551615 bytes"},
        Case{refused, "not due (kind 66, group 81985529216486902, sequence 7"},
        Case{misplaced, "of another length than is due"}}) {
    Stranger peer;
    peer.say(&c.header, sizeof c.header);
    peer.say("abc", 3);
    run_to_the_end(peer.side);
    CHECK(peer.side.stream.state() == StreamState::broken);
    CHECK(peer.side.book.pages.empty());
    if (!says(peer.side.stream.why(), c.say)) check::fail(peer.side.stream.why());
  }
}

TEST(random_bytes_never_do_harm) {
  std::minstd_rand random(5);
  for (int round = 0; round < 200; ++round) {
    Stranger peer;
    std::vector<std::uint8_t> bytes(random() % 200);
    for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(random() >> 8U);
    TcpHeader header = header_of(0, random() % 64);
    // Half of them begin like one of ours.
    if (round % 2 == 0) peer.say(&header, 2 + random() % 31);
    peer.say(bytes.data(), bytes.size());
    peer.fd.reset();
    run_to_the_end(peer.side);
    CHECK(peer.side.stream.state() != StreamState::failed);
  }
}

TEST(an_abandoned_stream_is_a_reset_for_the_peer) {
  const int before = check::descriptors();
  for (const std::size_t turns : {0, 1, 2, 3}) {
    Pair pair;
    CHECK(pair.a.say(std::size_t{16} << 20U) && pair.b.say(std::size_t{16} << 20U));
    for (std::size_t i = 0; i < turns; ++i) {
      pair.a.stream.progress(1);
      pair.b.stream.progress(1);
    }
    pair.a.stream.abandon();
    CHECK(pair.a.stream.state() == StreamState::closed && pair.a.stream.progress() == 0);
    CHECK(says(pair.a.stream.why(), "was closed here"));
    pair.a.said.clear();  // its payloads are ours again
    run_to_the_end(pair.b);
    CHECK(pair.b.stream.state() == StreamState::reset);
    CHECK(pair.b.book.pages.empty());
  }
  CHECK(check::descriptors() == before);
}

// ---- silence -----------------------------------------------------------------------------------

// The kernel's own TCP_USER_TIMEOUT would end this one.
TEST(a_peer_that_lives_and_does_not_read_is_not_silent) {
  TcpOptions options;
  options.send_buffer = options.receive_buffer = 4096;
  TcpLimits limits;
  limits.silence_s = 0.1;
  Pair pair(options, limits);
  CHECK(pair.a.say(1'000'000));
  // Longer than it takes until the answer to one probe is late: the kernel leaves some out.
  const Deadline end(1.2);
  while (!end.passed() && pair.a.stream.state() == StreamState::open) {
    pair.a.stream.progress();
    pair.a.stream.check_silence(TcpStream::Clock::now());
    check::nap(5);
  }
  CHECK(pair.a.stream.state() == StreamState::open);
  CHECK(pair.turn_until([&] { return pair.all_heard(); }));
  pair.b.check_heard(pair.a);
}

TEST(a_line_that_is_cut_is_silent) {
  CHECK(kernel_tells_of_answers());
  if (::geteuid() != 0) return;  // only root may make networks
  check::Child child([] {
    if (::unshare(CLONE_NEWNET) != 0) return;  // nor root in some containers
    set_loopback(true);
    TcpLimits limits;
    limits.silence_s = 0.1;
    Pair pair(TcpOptions{}, limits);
    CHECK(pair.a.say(8));
    CHECK(pair.turn_until([&] { return pair.all_heard(); }));
    set_loopback(false);
    CHECK(pair.a.say(8));
    TcpSet set;
    set.add(pair.a.stream);
    CHECK(set.run([] { return false; }, Deadline(5)) == Drive::lost);
    if (pair.a.stream.state() != StreamState::silent) check::fail(pair.a.stream.why());
    CHECK(says(pair.a.stream.why(), "does not answer"));
  });
  CHECK(child.wait() == 0);
}

}  // namespace

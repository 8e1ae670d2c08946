// SPDX-License-Identifier: Apache-2.0
// A rendezvous in which ranks are missing, die or talk nonsense, strangers knock, and every system
// call fails in turn: it always ends, with an error that says why, and leaves nothing open.
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include "bootstrap/host.h"
#include "bootstrap/words.h"
#include "instrumented.h"
#include "rendezvous_of_test.h"
#include "transport/faults.h"

namespace {

using namespace coll;
using namespace coll::testing;
using std::chrono::milliseconds;

constexpr milliseconds kPromise{1000};  // within which a death is known

// What became of one rank.
struct Outcome {
  std::optional<Error> error;  // none: it was a success
  milliseconds time{};
};

Outcome outcome_of(const Identity& who, double timeout_s, const Stop& stop = {}) {
  const auto start = Clock::now();
  Outcome outcome;
  try {
    meet(who, timeout_s, stop);
  } catch (const Error& error) {
    outcome.error = error;
  }
  outcome.time = std::chrono::duration_cast<milliseconds>(Clock::now() - start);
  return outcome;
}

// The outcomes of these ranks, all threads of this process.
std::vector<Outcome> outcomes_of(const Identity& job, const std::vector<int>& ranks,
                                 double timeout_s) {
  std::vector<Outcome> outcomes(ranks.size());
  run_ranks(static_cast<int>(ranks.size()), [&](int i) {
    const auto index = static_cast<std::size_t>(i);
    outcomes[index] = outcome_of(with_rank(job, ranks[index]), timeout_s);
  });
  return outcomes;
}

// Mappings of memfds by this process; but for those that are nothing but the table at the beginning
// of one, where told. (A range that happens to be mapped right behind the table is one with it.)
int mappings(bool tables = false) {
  constexpr unsigned long kLargerThanTables = 1 << 20;
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:collectives") == std::string::npos) continue;
    unsigned long begin = 0, end = 0, offset = 0;
    CHECK(std::sscanf(line.c_str(), "%lx-%lx %*s %lx", &begin, &end, &offset) == 3);
    count += tables || offset + (end - begin) > kLargerThanTables ? 1 : 0;
  }
  return count;
}

// Until so many ranks of this process have been let in.
void await_mappings(int count) {
  const auto end = Clock::now() + std::chrono::seconds(10);
  while (mappings() < count) {
    if (Clock::now() > end) check::fail("waited in vain");
    ::usleep(500);
  }
}

// ---- ranks that do not come ----------------------------------------------------------------

TEST(a_time_out_names_the_missing) {
  const int before = check::descriptors();
  const std::vector<Outcome> outcomes = outcomes_of(identity(0, 6), {0, 2, 4}, 0.3);
  for (const Outcome& outcome : outcomes) {
    CHECK(outcome.error && outcome.error->status == Status::timeout);
    CHECK(says(*outcome.error, "ranks 1, 3, 5 of 6 had not come"));
    CHECK(outcome.error->rank == 1);
    CHECK(outcome.time < milliseconds(300) + kPromise);
  }
  CHECK(check::descriptors() == before);
}

TEST(rank_0_alone_says_what_to_check) {
  const Outcome outcome = outcome_of(identity(0, 2), 0.05);
  CHECK(outcome.error && outcome.error->status == Status::timeout);
  CHECK(says(*outcome.error, "after 0.05 s rank 1 of 2 had not come"));
  CHECK(says(*outcome.error, "COLLECTIVES_ATTEMPT"));
}

TEST(a_time_out_names_what_was_refused) {
  const Identity job = identity(0, 2);
  Identity other = with_rank(job, 1);
  other.ranks = 3;
  run_ranks(2, [&](int i) {
    const Outcome outcome = outcome_of(i == 0 ? job : other, 0.2);
    CHECK(outcome.error);
    CHECK(says(*outcome.error, "it was started for 3 ranks, rank 0 for 2"));
    CHECK(outcome.error->status == (i == 0 ? Status::timeout : Status::bootstrap));
  });
}

TEST(without_rank_0_the_others_say_what_to_check) {
  const Outcome outcome = outcome_of(identity(1, 2), 0.1);
  CHECK(outcome.error && outcome.error->status == Status::timeout);
  CHECK(outcome.error->rank == 0);
  CHECK(says(*outcome.error, "rank 0 has not opened the rendezvous within 0.1 s"));
  CHECK(says(*outcome.error, "COLLECTIVES_JOB"));
}

TEST(a_rank_0_that_says_nothing_is_told_from_none) {
  const Identity job = identity(1, 2);
  const Opened door = listen_at(socket_name(::geteuid(), job), 8);
  CHECK(door.error == 0);
  const Outcome outcome = outcome_of(job, 0.1);
  CHECK(outcome.error && outcome.error->status == Status::timeout);
  CHECK(says(*outcome.error, "process " + std::to_string(::getpid())));
  CHECK(says(*outcome.error, "is there but did not answer"));
}

TEST(a_rank_with_less_patience_ends_it_for_all) {
  const Identity job = identity(0, 3);
  run_ranks(2, [&](int rank) {
    const Outcome outcome = outcome_of(with_rank(job, rank), rank == 0 ? 20 : 0.2);
    CHECK(outcome.error && outcome.error->status == Status::timeout);
    CHECK(says(*outcome.error, "rank 1 of job"));
    CHECK(says(*outcome.error, "rank 2 of 3 had not come"));
    CHECK(outcome.error->rank == 2);
    CHECK(outcome.time < check::promised(std::chrono::seconds(5)));
  });
}

// ---- ranks that end while the group forms ---------------------------------------------------

TEST(a_rank_that_is_killed_is_named_to_all) {
  const int before = check::descriptors(), maps = mappings();
  const Identity job = identity(0, 4);
  int ready[2];
  CHECK(::pipe(ready) == 0);
  // A member in full, but for the wait at the end.
  check::Child victim([&] {
    Stranger rank2(job);
    rank2.say(make_hello(with_rank(job, 2)));
    CHECK(rank2.hear()->kind == NoticeKind::welcome);
    const Membership me = join_group(std::move(rank2.memfd), shape_of(4), 2, 2);
    const Notice attached = make_notice(NoticeKind::attached, 0, Status::ok, -1, "");
    rank2.say(&attached, sizeof attached);
    CHECK(::write(ready[1], "x", 1) == 1);
    for (;;) ::pause();
  });
  Clock::time_point killed;
  run_ranks(3, [&](int i) {
    if (i == 2) {
      await_mappings(maps + 2);
      char byte = 0;
      CHECK(::read(ready[0], &byte, 1) == 1);
      killed = Clock::now();
      victim.kill(SIGKILL);
      return;
    }
    const Outcome outcome = outcome_of(with_rank(job, i), 20);
    CHECK(outcome.error && outcome.error->status == Status::peer_lost);
    CHECK(outcome.error->rank == 2);
    CHECK(says(*outcome.error, "rank 2, process " + std::to_string(victim.pid()) + ", ended"));
  });
  CHECK(Clock::now() - killed < kPromise);
  ::close(ready[0]);
  ::close(ready[1]);
  CHECK(check::descriptors() == before);
}

TEST(when_rank_0_is_killed_the_others_know) {
  const int maps = mappings();
  const Identity job = identity(0, 3);
  check::Child rank0([&] { meet(job, 20); });
  Clock::time_point killed;
  std::thread killer([&] {
    await_mappings(maps + 1);
    killed = Clock::now();
    rank0.kill(SIGKILL);
  });
  const Outcome outcome = outcome_of(with_rank(job, 1), 20);
  killer.join();
  CHECK(outcome.error && outcome.error->status == Status::peer_lost);
  CHECK(outcome.error->rank == 0);
  CHECK(says(*outcome.error, "rank 0, process " + std::to_string(rank0.pid())));
  CHECK(Clock::now() - killed < kPromise);
}

// Rank 1 of 3 is `act`ed by hand after it has been let in; what ranks 0 and 2 say of it.
template <class Act>
std::vector<Error> errors_after(Act act) {
  const int maps = mappings();
  const Identity job = identity(0, 3);
  std::vector<Error> errors;
  std::thread actor([&] {
    Stranger stranger(job);
    stranger.say(make_hello(with_rank(job, 1)));
    const auto welcome = stranger.hear();
    CHECK(welcome && welcome->kind == NoticeKind::welcome && stranger.memfd);
    await_mappings(maps + 2);
    act(stranger);
  });
  for (const Outcome& outcome : outcomes_of(job, {0, 2}, 10)) {
    CHECK(outcome.error);
    errors.push_back(*outcome.error);
  }
  actor.join();
  return errors;
}

TEST(what_a_rank_says_of_its_failure_reaches_all) {
  for (const Error& error : errors_after([](Stranger& stranger) {
         const Notice notice =
             make_notice(NoticeKind::failed, 0, Status::out_of_memory, 1, "rank 1: no memory");
         stranger.say(&notice, sizeof notice);
       })) {
    CHECK(error.status == Status::out_of_memory);
    CHECK(error.rank == 1);
    CHECK(says(error, "rank 1: no memory"));
  }
}

TEST(a_rank_that_talks_nonsense_ends_it_for_all) {
  for (const Error& error : errors_after([](Stranger& stranger) { stranger.say("nonsense", 8); })) {
    CHECK(error.status == Status::bootstrap);
    CHECK(says(error, "8 bytes"));
  }
}

TEST(memory_that_is_no_segment_is_refused_by_the_rank_that_is_handed_it) {
  const Identity job = identity(1, 2);
  const Opened door = listen_at(socket_name(::geteuid(), job), 8);
  CHECK(door.error == 0);
  const int before = check::descriptors();
  std::thread rank0([&] {
    pollfd fd{door.fd.get(), POLLIN, 0};
    CHECK(::poll(&fd, 1, 5000) == 1);
    const Opened guest = accept_from(door.fd);
    const Memory memory = Memory::shared(kPage);
    const Notice welcome = make_notice(NoticeKind::welcome, 0, Status::ok, -1, "");
    CHECK(send_packet(guest.fd, &welcome, sizeof welcome, memory.fd()) == 0);
    check::nap(20);
  });
  const Outcome outcome = outcome_of(job, 5);
  rank0.join();
  CHECK(outcome.error && outcome.error->status == Status::bootstrap);
  CHECK(says(*outcome.error, "no segment of this library"));
  CHECK(check::descriptors() == before);
}

TEST(a_refusal_is_read_although_the_greeting_was_not) {
  const Identity job = identity(1, 2);
  const Opened door = listen_at(socket_name(::geteuid(), job), 8);
  CHECK(door.error == 0);
  std::thread rank0([&] {
    pollfd fd{door.fd.get(), POLLIN, 0};
    CHECK(::poll(&fd, 1, 5000) == 1);
    Opened guest = accept_from(door.fd);
    fd.fd = guest.fd.get();
    CHECK(::poll(&fd, 1, 5000) == 1);
    const Notice no = make_notice(NoticeKind::refused, 0, Status::bootstrap, -1, "not you");
    CHECK(send_packet(guest.fd, &no, sizeof no) == 0);
    guest.fd.reset();  // with the greeting in its queue: the kernel makes this a reset
  });
  const Outcome outcome = outcome_of(job, 2);
  rank0.join();
  CHECK(outcome.error && says(*outcome.error, "not you"));
}

// ---- strangers ---------------------------------------------------------------------------------

TEST(strangers_do_not_disturb) {
  const int before = check::descriptors();
  const Identity job = identity(0, 4);
  Outcome rank0;
  std::thread host([&] { rank0 = outcome_of(job, 10); });
  std::vector<Stranger> strangers;
  for (int i = 0; i < 120; ++i) {
    strangers.emplace_back(job);
    if (i % 3 == 1) strangers.back().say("GET / HTTP/1.1\r\n\r\n", 18);
    if (i % 3 == 2) strangers.back().say(std::string(100'000, 'x').data(), 100'000);
  }
  for (const Outcome& outcome : outcomes_of(job, {1, 2, 3}, 10)) {
    CHECK(!outcome.error);
    CHECK(outcome.time < check::promised(std::chrono::seconds(2)));
  }
  host.join();
  CHECK(!rank0.error);
  strangers.clear();
  CHECK(check::descriptors() == before);
}

TEST(of_too_many_silent_strangers_the_oldest_go) {
  const Identity job = identity(0, 2);
  Outcome rank0;
  std::thread host([&] { rank0 = outcome_of(job, 10); });
  std::vector<Stranger> strangers;
  for (int i = 0; i < 2 + 64 + 1; ++i) strangers.emplace_back(job);
  CHECK(strangers.front().hear() == nullptr);
  CHECK(!outcome_of(with_rank(job, 1), 10).error);
  host.join();
  CHECK(!rank0.error);
}

TEST(a_silent_stranger_is_dropped_after_a_while) {
  const Identity job = identity(0, 2);
  std::thread host([&] { Host(job, 10, {}, {}, 0.05).run(shape_of(2)); });
  Stranger silent(job);
  CHECK(silent.refused().find("it said nothing for 0.05 s") != std::string::npos);
  meet(with_rank(job, 1));
  host.join();
}

// ---- interruption -------------------------------------------------------------------------------

TEST(a_stop_ends_either_side) {
  for (const int rank : {0, 1}) {
    std::atomic<int> asked{0};
    const Outcome outcome =
        outcome_of(identity(rank, 2), 20, [&asked] { return asked.fetch_add(1) == 3; });
    CHECK(outcome.error && outcome.error->status == Status::aborted);
    CHECK(outcome.time < kPromise);
  }
}

TEST(interruptions_by_signals_change_nothing) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    faults::interrupt_at_random(seed);
    const std::vector<Outcome> outcomes = outcomes_of(identity(0, 3), {0, 1, 2}, 10);
    const std::uint64_t fired = faults::fired();
    faults::clear();
    CHECK(fired > 0);
    for (const Outcome& outcome : outcomes) CHECK(!outcome.error);
  }
}

// ---- every system call fails in turn -----------------------------------------------------------

// A rendezvous of two under `fault`. Returns whether it went as if there was none.
bool untouched(const faults::Fault& fault, double timeout_s) {
  const int before = check::descriptors();
  const Identity job = identity(0, 2);
  faults::arm(fault);
  const std::vector<Outcome> outcomes = outcomes_of(job, {0, 1}, timeout_s);
  const bool fired = faults::fired() > 0;
  faults::clear();
  bool failed = false;
  for (const Outcome& outcome : outcomes) {
    CHECK(outcome.time < milliseconds(static_cast<int>(timeout_s * 1000)) + kPromise);
    if (outcome.error) CHECK(std::string(outcome.error->what()).size() > 20);
    failed = failed || outcome.error.has_value();
  }
  CHECK(check::descriptors() == before);
  return !fired && !failed;
}

TEST(the_nth_call_fails) {
  constexpr double kShort = 0.06;  // seconds: some of these can only end by time-out
  std::uint64_t n = 1;
  while (!untouched({SystemCall::any, n, EIO, false}, kShort)) {
    CHECK(n < 2000);
    ++n;
  }
  CHECK(n > 30);
}

TEST(each_call_fails_for_ever) {
  for (int c = 0; c <= static_cast<int>(SystemCall::any); ++c) {
    for (const int error : {EMFILE, ENOMEM})
      untouched({static_cast<SystemCall>(c), 1, error, true}, 0.06);
  }
}

// ---- nothing is left ------------------------------------------------------------------------

TEST(a_hundred_groups_leave_nothing) {
  const int descriptors = check::descriptors(), maps = mappings(true);
  for (int i = 0; i < 100; ++i) {
    for (const Outcome& outcome : outcomes_of(identity(0, 2), {0, 1}, 10)) CHECK(!outcome.error);
  }
  CHECK(check::descriptors() == descriptors);
  CHECK(mappings(true) == maps);
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// Ranks that find each other, and ranks that are refused.
#include <sys/un.h>

#include <cmath>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "base/version.h"
#include "bootstrap/words.h"
#include "instrumented.h"
#include "rendezvous_of_test.h"

namespace {

using namespace coll;
using namespace coll::testing;

// ---- ranks that find each other ----------------------------------------------------------

TEST(alone) {
  const int before = check::descriptors();
  const Membership alone = meet(identity(0, 1));
  CHECK(check::descriptors() == before);
  CHECK(alone.memory->fd() == -1);
  CHECK(alone.segment.shape() == shape_of(1));
  CHECK(life_of(alone.segment, 0) == Life::here);
}

TEST(threads_meet) {
  for (const int ranks : {2, 3, 8}) {
    const int before = check::descriptors();
    const Identity job = identity(0, ranks);
    run_ranks(ranks, [&](int rank) {
      const Membership me = meet(with_rank(job, rank));
      CHECK(me.segment.header().attached.load() == static_cast<unsigned>(ranks));
      for (int r = 0; r < ranks; ++r) CHECK(life_of(me.segment, r) != Life::absent);
      CHECK(me.memory->fd() >= 0);
      me.segment.slot_ring(rank)[0] = std::byte{1};
    });
    CHECK(check::descriptors() == before);
  }
}

TEST(processes_meet_in_any_order) {
  constexpr int kRanks = 8;
  const int before = check::descriptors();
  const Identity job = identity(0, kRanks);
  std::mt19937 random(7);
  for (int round = 0; round < 3; ++round) {
    std::vector<check::Child> children;
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto late = static_cast<useconds_t>(random() % 40'000);
      children.emplace_back([&, late] {
        const int descriptors = check::descriptors();
        ::usleep(late);
        const Membership me = meet(with_rank(job, rank));
        CHECK(check::descriptors() == descriptors + 2);  // its claim, and the memory
        // All are there, and all see what each writes.
        me.segment.rank(rank).progress.tick.store(me.segment.group(), std::memory_order_release);
        for (int r = 0; r < kRanks; ++r) {
          while (me.segment.rank(r).progress.tick.load() != me.segment.group()) sys::yield();
        }
      });
    }
    for (check::Child& child : children) CHECK(child.wait() == 0);
  }
  CHECK(check::descriptors() == before);
}

TEST(one_rendezvous_right_after_another) {
  constexpr int kRanks = 4, kTimes = 30;
  const Identity job = identity(0, kRanks);
  std::vector<std::set<std::uint64_t>> groups(kRanks);
  run_ranks(kRanks, [&](int rank) {
    for (int i = 0; i < kTimes; ++i) {
      const Membership me = meet(with_rank(job, rank));
      groups[static_cast<std::size_t>(rank)].insert(me.segment.group());
    }
  });
  CHECK(groups[0].size() == kTimes);
  for (const auto& seen : groups) CHECK(seen == groups[0]);
}

TEST(a_group_of_threads) {
  std::vector<Membership> group = local_group(shape_of(4));
  CHECK(group.size() == 4);
  for (int r = 0; r < 4; ++r) CHECK(life_of(group[0].segment, r) == Life::here);
  CHECK(group[3].segment.header().attached.load() == 4);
  CHECK(group[1].memory == group[2].memory);
  group.erase(group.begin() + 3);
  CHECK(life_of(group[0].segment, 3) == Life::closed);
  CHECK(thrown<Error>([] { local_group({2, 4, 100, 64}); }).status == Status::invalid_argument);
}

// ---- arguments -------------------------------------------------------------------------------

TEST(arguments_that_cannot_be) {
  const auto refused = [](const Identity& who, const SegmentShape& shape, double timeout_s) {
    return thrown<Error>([&] { rendezvous(who, shape, timeout_s); }).status ==
           Status::invalid_argument;
  };
  CHECK(refused({0, 0, "j", 0}, shape_of(1), 1));
  CHECK(refused({-1, 2, "j", 0}, shape_of(2), 1));
  CHECK(refused({2, 2, "j", 0}, shape_of(2), 1));
  CHECK(refused({0, 2, "j", -1}, shape_of(2), 1));
  CHECK(refused({0, 2, "", 0}, shape_of(2), 1));
  CHECK(refused({0, 2, "two\nlines", 0}, shape_of(2), 1));
  CHECK(refused({0, 2, std::string(256, 'j'), 0}, shape_of(2), 1));
  CHECK(refused({0, 2, "j", 0}, shape_of(3), 1));
  CHECK(refused({0, 2, "j", 0}, shape_of(2), 0));
  CHECK(refused({0, 2, "j", 0}, shape_of(2), std::nan("")));
  CHECK(refused({0, 2, "j", 0}, {2, 4, 100, 64}, 1));
}

TEST(shapes_that_differ) {
  const Identity job = identity(0, 2);
  run_ranks(2, [&](int rank) {
    SegmentShape shape = shape_of(2);
    if (rank == 1) shape.slot_bytes *= 2;
    const Error error = thrown<Error>([&] { rendezvous(with_rank(job, rank), shape, 10); });
    CHECK(error.status == Status::bootstrap);
    CHECK(error.rank == 1);
    CHECK(says(error, "pass the same sizes on every rank"));
  });
}

// ---- refusals, as the refused side reads them -------------------------------------------------

// A rank 0 in the background that waits until the true rank 1 comes.
class Rank0 {
 public:
  explicit Rank0(Identity job)
      : thread_([this, job = std::move(job)] {
          try {
            meet(job);
          } catch (const std::exception& error) {
            outcome_ = error.what();
          }
        }) {}
  // Its error; empty: the group came to be.
  std::string outcome() {
    thread_.join();
    return outcome_;
  }

 private:
  std::string outcome_;
  std::thread thread_;
};

TEST(every_refusal_says_why) {
  const Identity job = identity(0, 3, 2);
  Rank0 rank0(job);
  const Hello good = make_hello(with_rank(job, 1));
  const auto refused = [&](auto spoil, std::size_t n = sizeof(Hello)) {
    Hello hello = good;
    spoil(hello);
    Stranger stranger(job);
    stranger.say(&hello, n);
    return stranger.refused();
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(has(refused([](Hello& h) { h.ranks = 4; }), "started for 4 ranks, rank 0 for 3"));
  CHECK(has(refused([](Hello& h) { h.rank = 3; }), "there is no rank 3 among 3"));
  CHECK(has(refused([](Hello& h) { h.rank = -1; }), "there is no rank -1"));
  CHECK(has(refused([](Hello& h) { h.attempt = 1; }), "is at attempt 2 of job"));
  CHECK(has(refused([](Hello& h) { h.attempt = 1; }), "it is at attempt 1"));
  CHECK(has(refused([](Hello& h) { h.job += 1; }), "belongs to another job"));
  CHECK(has(refused([](Hello& h) { h.pid += 1; }), "another PID namespace"));
  CHECK(has(refused([](Hello& h) { h.preamble.wire = 9; }), "(wire version 9)"));
  const std::string other = refused([](Hello& h) { std::strcpy(h.library, "9.8.7"); });
  CHECK(has(other, "'9.8.7'") && has(other, kLibraryVersion));
  CHECK(has(refused([](Hello& h) { std::memset(h.library, 'x', 24); }), "it runs version 'xxxx"));
  CHECK(has(refused([](Hello& h) { h.preamble.magic = 0; }), "not the greeting of a rank"));
  CHECK(has(refused([](Hello&) {}, 15), "15 bytes are not the greeting"));
  CHECK(has(refused([](Hello&) {}, 40), "40 bytes instead of 64"));

  run_ranks(2, [&](int i) { meet(with_rank(job, i + 1)); });
  CHECK(rank0.outcome().empty());
}

// Else two jobs of one name could form one group of some ranks of each.
TEST(a_rank_claimed_twice_ends_the_meeting) {
  const Identity job = identity(0, 3);
  Rank0 rank0(job);
  std::string first_told;
  std::thread first([&] { first_told = thrown<Error>([&] { meet(with_rank(job, 1)); }).what(); });
  Stranger second(job);
  check::nap(20);
  second.say(make_hello(with_rank(job, 1)));
  first.join();
  for (const std::string& told : {first_told, rank0.outcome()}) {
    CHECK(told.find("rank 1 is claimed by process " + std::to_string(::getpid())) !=
          std::string::npos);
  }
}

TEST(a_second_rank_0_ends_the_meeting_of_the_first) {
  const Identity job = identity(0, 2);
  Rank0 rank0(job);
  Stranger(job).leave();  // it is open now
  const Error error = thrown<Error>([&] { meet(job); });
  CHECK(error.status == Status::bootstrap);
  CHECK(says(error, "there is a rank 0 of " + job_in_words(job) + " already, process"));
  CHECK(rank0.outcome().find("rank 0 is claimed by") != std::string::npos);
}

TEST(a_late_rank_of_an_earlier_attempt_is_told_both) {
  const Identity job = identity(0, 2, 3);
  Rank0 rank0(job);
  Identity late = with_rank(job, 1);
  late.attempt = 2;
  const Error error = thrown<Error>([&] { meet(late); });
  CHECK(error.status == Status::bootstrap);
  CHECK(says(error, "rank 0 is at attempt 3"));
  CHECK(says(error, "it is at attempt 2"));
  meet(with_rank(job, 1));
  CHECK(rank0.outcome().empty());
}

TEST(an_early_rank_of_a_later_attempt_waits_for_its_own) {
  const Identity old = identity(0, 2, 1);
  Identity next = old;
  next.attempt = 2;
  Rank0 old_rank0(old);
  Stranger(old).leave();
  std::thread early([&] { meet(with_rank(next, 1)); });
  const Error error = thrown<Error>([&] {
    Identity never = with_rank(old, 1);
    never.attempt = 5;
    meet(never, 0.3);
  });
  CHECK(error.status == Status::timeout);
  CHECK(says(error, "only a rank 0 of attempt 1 was there"));
  meet(next);
  early.join();
  meet(with_rank(old, 1));
  CHECK(old_rank0.outcome().empty());
}

TEST(another_user_is_refused_on_both_sides) {
  if (::geteuid() != 0) return;  // only root can become somebody else
  const Identity job = identity(0, 2);
  Rank0 rank0(job);
  const std::string name = socket_name(0, job);
  check::Child other([&] {
    CHECK(::setuid(12'345) == 0);
    Opened opened = connect_to(name);
    for (int i = 0; i < 1000 && opened.error != 0; ++i) {
      ::usleep(500);
      opened = connect_to(name);
    }
    const Hello hello = make_hello(with_rank(job, 1));
    send_packet(opened.fd, &hello, sizeof hello);
    pollfd fd{opened.fd.get(), POLLIN, 0};
    CHECK(::poll(&fd, 1, 5000) == 1);
    char packet[1024];
    Descriptor memfd;
    ssize_t n = receive_packet(opened.fd, packet, sizeof packet, &memfd);
    if (n == -ECONNRESET) n = receive_packet(opened.fd, packet, sizeof packet, &memfd);
    CHECK(n > 0 && !memfd);
    const std::string text = read_notice(packet, static_cast<std::size_t>(n)).text;
    CHECK(text.find("belongs to user 12345, rank 0 to user 0") != std::string::npos);
  });
  CHECK(other.wait() == 0);
  meet(with_rank(job, 1));
  CHECK(rank0.outcome().empty());

  // Somebody else sits at the address of our rank 0.
  int ready[2];
  CHECK(::pipe(ready) == 0);
  const check::Child squatter([&] {
    CHECK(::setuid(12'345) == 0);
    const Opened door = listen_at(name, 8);
    CHECK(door.error == 0 && ::write(ready[1], "x", 1) == 1);
    for (;;) ::pause();
  });
  char byte = 0;
  CHECK(::read(ready[0], &byte, 1) == 1);
  CHECK(says(thrown<Error>([&] { meet(with_rank(job, 1)); }), "of user 12345"));
  CHECK(says(thrown<Error>([&] { meet(job); }), "of user 12345"));
  ::close(ready[0]);
  ::close(ready[1]);
}

// ---- ranks that cannot take part ----------------------------------------------------------------

// What each rank throws; `late` comes a little after the others.
std::vector<std::string> refused_all(const std::vector<Terms>& terms, int late = -1) {
  const int ranks = static_cast<int>(terms.size());
  const Identity job = identity(0, ranks);
  std::vector<std::string> said(terms.size());
  const auto begin = Clock::now();
  run_ranks(ranks, [&](int rank) {
    if (rank == late) ::usleep(100'000);
    const auto& own = terms[static_cast<std::size_t>(rank)];
    const Error error =
        thrown<Error>([&] { rendezvous(with_rank(job, rank), shape_of(ranks), 30, {}, own); });
    CHECK(error.status == Status::invalid_argument);
    said[static_cast<std::size_t>(rank)] = error.what();
  });
  CHECK(Clock::now() - begin < check::promised(std::chrono::seconds(3)));
  return said;
}

TEST(a_rank_that_cannot_take_part_tells_all_why) {
  for (const std::size_t culprit : {0U, 2U}) {
    for (const int late : {-1, 0, 1}) {
      std::vector<Terms> terms(3);
      terms[culprit].refusal = "its number of streams is 'many'";
      for (const std::string& said : refused_all(terms, late)) {
        CHECK(said == "rank " + std::to_string(culprit) +
                          " cannot take part: its number of streams is 'many'");
      }
    }
  }
  CHECK(says(thrown<Error>([] { rendezvous({}, shape_of(1), 1, {}, {"", "why"}); }), "part: why"));
}

TEST(ranks_that_trust_other_networks_are_told) {
  for (const std::string& said : refused_all({{}, {}, {"[10.0.0.0/8]", ""}}, 1)) {
    CHECK(said.find("rank 0 has trusted no networks, as none are said and rank 2 of job") == 0);
    CHECK(said.find("has [10.0.0.0/8]: give all ranks the same") != std::string::npos);
  }
  const std::vector<Terms> same(2, {"[::/0]", ""});
  const Identity job = identity(0, 2);
  run_ranks(2, [&](int rank) {
    const Terms& own = same[static_cast<std::size_t>(rank)];
    CHECK(rendezvous(with_rank(job, rank), shape_of(2), 10, {}, own).memory->fd() >= 0);
  });
  const Terms endless{std::string(480, 'x'), ""};
  CHECK(says(thrown<Error>([&] { rendezvous({}, shape_of(1), 1, {}, endless); }), "480 bytes"));
}

// ---- names and words -----------------------------------------------------------------------

TEST(socket_names_tell_jobs_apart_and_fit) {
  std::set<std::string> names;
  const std::string tail(200, 'x');
  const std::vector<std::string> jobs = {"a", "a/1", "a/any", "b", "a" + tail, "b" + tail};
  for (const std::string& job : jobs) {
    for (const int attempt : {0, 1, 2'000'000'000}) {
      names.insert(socket_name(4'000'000'000U, {0, 2, job, attempt}));
    }
    names.insert(any_attempt_name(4'000'000'000U, {0, 2, job, 0}));
  }
  names.insert(socket_name(1, {0, 2, "a", 0}));
  CHECK(names.size() == jobs.size() * 4 + 1);
  for (const std::string& name : names) CHECK(name.size() < sizeof(sockaddr_un::sun_path));
  CHECK(socket_name(7, {0, 2, "a", 3}) == "collectives/7/a/3");
}

TEST(ranks_in_words_are_short) {
  CHECK(ranks_in_words({3}) == "rank 3");
  CHECK(ranks_in_words({1, 2, 3, 7}) == "ranks 1-3, 7");
  CHECK(ranks_in_words({0, 1, 4, 6, 7}) == "ranks 0, 1, 4, 6, 7");
  CHECK(seconds_in_words(0.5) == "0.5 s");
}

TEST(a_packet_that_is_no_notice) {
  Notice notice = make_notice(NoticeKind::failed, 0, Status::timeout, 3, "why");
  CHECK(error_of(read_notice(&notice, sizeof notice)).rank == 3);
  CHECK(error_of(notice).status == Status::timeout);
  const auto refused = [](const Notice& bad, std::size_t n) {
    return thrown<Error>([&] { read_notice(&bad, n); }).status == Status::bootstrap;
  };
  CHECK(refused(notice, sizeof notice - 1));
  notice.kind = static_cast<NoticeKind>(9);
  CHECK(refused(notice, sizeof notice));
  notice.kind = NoticeKind::failed;
  notice.preamble.wire += 1;
  CHECK(refused(notice, sizeof notice));
  notice.preamble.wire -= 1;
  notice.status = static_cast<Status>(77);
  std::memset(notice.text, 'x', sizeof notice.text);
  const Error error = error_of(read_notice(&notice, sizeof notice));
  CHECK(error.status == Status::bootstrap);
  CHECK(std::string(error.what()).size() == sizeof notice.text - 1);
}

}  // namespace

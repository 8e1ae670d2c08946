// SPDX-License-Identifier: Apache-2.0
// Ranks connect to one another: those that want to, whoever comes first, and what is sent at once
// behind the handshake arrives.
#include <atomic>
#include <thread>

#include "mesh_of_test.h"

namespace {

using namespace coll;
using namespace coll::testing;

// One thread per rank: wants all others, sends frames as soon as it may, hears those of all.
void rank_of_full_mesh(Job& job, int rank, std::atomic<int>& finished) {
  const auto mesh = job.mesh(rank);
  std::vector<std::unique_ptr<Side>> sides(job.doors.size());
  TcpSet set;
  for (int peer = 0; peer < job.ranks(); ++peer) {
    if (peer != rank) mesh->want(peer);
  }
  std::size_t made = 0;
  const bool complete = wait_until(*mesh, [&] {
    for (int peer = 0; peer < job.ranks(); ++peer) {
      auto& side = sides[static_cast<std::size_t>(peer)];
      if (peer == rank || side || !mesh->connected(peer)) continue;
      side = std::make_unique<Side>(mesh->take(peer), static_cast<std::uint64_t>(rank));
      set.add(side->stream);
      CHECK(side->say(7) && side->say(0) && side->say(30'000));
      side->stream.progress();
      ++made;
    }
    return made + 1 == sides.size();
  });
  CHECK(complete);
  CHECK(set.run(
            [&] {
              return std::all_of(sides.begin(), sides.end(), [](const auto& side) {
                return !side || (side->book.pages.size() == 3 && side->all_sent());
              });
            },
            Deadline(10)) == Drive::done);
  // Who leaves first ends its streams, and others may still wait for a third.
  ++finished;
  CHECK(wait_until(*mesh, [&] { return finished == job.ranks(); }));
  for (int peer = 0; peer < job.ranks(); ++peer) {
    if (peer == rank) continue;
    const Side& side = *sides[static_cast<std::size_t>(peer)];
    const std::size_t lengths[] = {7, 0, 30'000};
    for (std::uint32_t n = 0; n < 3; ++n) {
      CHECK(side.book.pages[n] == payload_of(static_cast<std::uint64_t>(peer), n, lengths[n]));
    }
  }
  CHECK(mesh->refused() == 0 && mesh->half_open() == 0);
}

TEST(all_ranks_connect_to_all) {
  const int before = check::descriptors();
  for (const int p : {1, 2, 3, 8}) {
    Job job(p);
    std::atomic<int> finished{0};
    run_ranks(p, [&](int rank) { rank_of_full_mesh(job, rank, finished); });
  }
  CHECK(check::descriptors() == before);
}

TEST(only_those_that_want_to_connect) {
  Job job(4);
  run_ranks(4, [&job](int rank) {
    const auto mesh = job.mesh(rank);
    const int partner = 3 - rank;
    mesh->want(partner);
    CHECK(wait_until(*mesh, [&] { return mesh->connected(partner); }));
    // Time for what must not come.
    CHECK(!wait_until(*mesh, [] { return false; }, 0.02));
    for (int peer = 0; peer < 4; ++peer) {
      if (peer != rank) CHECK(mesh->connected(peer) == (peer == partner));
    }
  });
}

TEST(the_order_of_wanting_does_not_matter) {
  for (const bool lower_first : {true, false}) {
    Job job(2);
    const auto lower = job.mesh(0), higher = job.mesh(1);
    if (lower_first) lower->want(1);
    CHECK(!turns_until({lower.get(), higher.get()}, [&] { return lower->connected(1); }, 0.02));
    for (int i = 0; i < 3; ++i) higher->want(0);
    const auto both = [&] { return lower->connected(1) && higher->connected(0); };
    CHECK(turns_until({lower.get(), higher.get()}, both));
    if (!lower_first) lower->want(1);
    higher->want(0);
    CHECK(!turns_until({lower.get(), higher.get()}, [] { return false; }, 0.01));
    CHECK(lower->half_open() == 0 && lower->refused() == 0);
    check_carries_frames(higher->take(0), lower->take(1));
  }
}

// Its kernel takes the connection; its program computes, for longer than any stranger may take.
TEST(an_acceptor_may_come_late) {
  Job job(2);
  MeshLimits limits;
  limits.stranger_s = 0.1;
  const auto lower = job.mesh(0, limits), higher = job.mesh(1, limits);
  higher->want(0);
  CHECK(!turns_until({higher.get()}, [&] { return higher->connected(0); }, 0.15));
  CHECK(says(higher->standing(0), "is connected and has not answered yet"));
  CHECK(turns_until({lower.get(), higher.get()},
                    [&] { return lower->connected(1) && higher->connected(0); }));
  CHECK(lower->refused() == 0);
}

// Long turns: what has come in time is heard though its time is over.
TEST(an_acceptor_may_be_away_between_two_turns) {
  Job job(2);
  MeshLimits limits;
  limits.stranger_s = 0.02;
  const auto lower = job.mesh(0, limits), higher = job.mesh(1, limits);
  higher->want(0);
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 5; ++k, check::nap(6)) higher->step();
    lower->step();
  }
  CHECK(lower->connected(1) && higher->connected(0) && lower->refused() == 0);
}

// A connector that was away is dropped like a stranger, and comes again.
TEST(a_connector_that_was_dropped_comes_again) {
  Job job(2);
  MeshLimits limits;
  limits.stranger_s = 0.01;
  const auto lower = job.mesh(0, limits), higher = job.mesh(1, limits);
  higher->want(0);
  CHECK(turns_until({higher.get()},
                    [&] { return says(higher->standing(0), "has not answered yet"); }));
  CHECK(turns_until({lower.get()}, [&] { return lower->refused() == 1; }));
  CHECK(says(lower->standing(1), "1 connection was refused, from 127.0.0.1:"));
  CHECK(turns_until({higher.get()}, [&] { return says(higher->standing(0), "tried in vain"); }));
  CHECK(says(higher->standing(0), "closed the connection") ||
        says(higher->standing(0), "ECONNRESET"));
  CHECK(turns_until({lower.get(), higher.get()},
                    [&] { return lower->connected(1) && higher->connected(0); }));
}

// What comes later and says less does not hide that the secret is another one.
TEST(the_refusal_that_tells_most_is_kept) {
  Besieged besieged;
  const Hand stranger(besieged.door());
  Challenge challenge = connector_of(besieged.job.identity(1), secret_of_job(7));
  CHECK(stranger.prove(*besieged.mesh, challenge).state == ChallengeStep::State::refused);
  besieged.expect_refused(1, "from 127.0.0.1:");
  std::make_unique<Hand>(besieged.door()).reset();  // it leaves at once
  besieged.expect_refused(2, "has not proved that it knows the secret");
  besieged.expect_refused(2, "2 connections were refused, one of them from 127.0.0.1:");
}

// Each second attempt is dropped without a word.
TEST(a_connector_with_another_secret_gives_up_though_it_is_dropped_in_between) {
  TcpListener door(loopback(), 4);
  const MeshTerms others{rank_of_job(0, 2), secret_of_job()};
  const MeshTerms own{rank_of_job(1, 2), secret_of_job(7)};
  MeshLimits limits;
  limits.unreachable_s = 0.1;
  limits.first_pause_s = limits.longest_pause_s = 0.005;
  MeshDial dial(0, door.endpoint(), own, limits);
  std::optional<MeshHandshake> talk;
  int came = 0;
  const Error error = thrown<Error>([&] {
    for (const Deadline end(5); !end.passed(); ::usleep(50)) {
      dial.step(MeshDial::Clock::now());
      if (came > 1) CHECK(says(dial.standing(), "its secret is another one"));
      if (Connection knock = door.accept(); knock.fd && came++ % 2 == 0) {
        talk.emplace(std::move(knock), others, Role::acceptor, kAnyRank);
      }
      if (talk && talk->step() != MeshHandshake::State::talking) talk.reset();
    }
  });
  CHECK(says(error.what(), "cannot reach rank 0") && says(error.what(), "its secret is another"));
}

TEST(a_door_may_open_late) {
  Job job(2);
  job.listeners.front() = TcpListener(loopback(), 4);  // closes the one that was told
  const auto higher = job.mesh(1);
  higher->want(0);
  CHECK(turns_until({higher.get()}, [&] { return says(higher->standing(0), "ECONNREFUSED"); }));
  job.listeners.front() = TcpListener(job.doors.front(), 4);
  const auto lower = job.mesh(0);
  CHECK(turns_until({lower.get(), higher.get()},
                    [&] { return lower->connected(1) && higher->connected(0); }));
}

TEST(a_door_that_does_not_open_is_an_error) {
  Job job(2);
  job.listeners.front() = TcpListener(loopback(), 4);
  MeshLimits limits;
  limits.unreachable_s = limits.absent_s = limits.refused_s = 0.05;
  const auto higher = job.mesh(1, limits);
  higher->want(0);
  const auto begin = Deadline::Clock::now();
  const Error error = thrown<Error>([&] { turns_until({higher.get()}, [] { return false; }, 5); });
  CHECK(Deadline::Clock::now() - begin > std::chrono::milliseconds(50));
  CHECK(error.status == Status::bootstrap && error.rank == 0);
  CHECK(says(error.what(), "rank 1 of job 'mesh', attempt 2 cannot reach rank 0 at " +
                               job.doors.front().text() + " for 0.05 s"));
  CHECK(says(error.what(), "ECONNREFUSED"));
}

// Too many strangers, say: that is for the caller's patience.
TEST(a_door_that_drops_is_tried_on) {
  Job job(2);
  MeshLimits limits;
  limits.unreachable_s = limits.absent_s = limits.refused_s = 0.02;
  limits.longest_pause_s = 0.01;
  const auto higher = job.mesh(1, limits);
  higher->want(0);
  int dropped = 0;
  const auto drop = [&] {
    dropped += job.listeners[0].accept().fd ? 1 : 0;
    return dropped == 10;
  };
  CHECK(turns_until({higher.get()}, drop));
  const auto lower = job.mesh(0);
  CHECK(turns_until({lower.get(), higher.get()},
                    [&] { return lower->connected(1) && higher->connected(0); }));
}

// It was there in between, so the time for which it cannot be reached begins anew.
TEST(a_door_that_was_open_may_close_again) {
  Job job(2);
  MeshLimits limits;
  limits.unreachable_s = limits.absent_s = limits.refused_s = 0.15;
  limits.longest_pause_s = 0.01;
  const auto higher = job.mesh(1, limits);
  higher->want(0);
  const auto refused = [&] { return says(higher->standing(0), "ECONNREFUSED"); };
  job.listeners[0] = TcpListener(loopback(), 4);
  CHECK(turns_until({higher.get()}, refused));
  job.listeners[0] = TcpListener(job.doors[0], 4);
  const Deadline longer(0.2);
  CHECK(turns_until({higher.get()}, [&] {
    job.listeners[0].accept();
    return longer.passed() && !refused();
  }));
  job.listeners[0] = TcpListener(loopback(), 4);
  CHECK(turns_until({higher.get()}, refused));
}

TEST(what_listens_in_place_of_a_rank_is_an_error) {
  struct Case {
    std::string answer, say;
  };
  for (const Case& c : {Case{"HTTP/1.1 400 Bad Request\r\n" + std::string(80, ' '), "greeting"},
                        Case{"220 hello\r\n", "11 bytes instead of 80"}}) {
    Job job(2);
    MeshLimits limits;
    limits.unreachable_s = limits.absent_s = limits.refused_s = 0.05;
    const auto higher = job.mesh(1, limits);
    higher->want(0);
    std::vector<Hand> guests;
    const auto answer = [&] {
      Connection guest = job.listeners[0].accept();
      if (!guest.fd) return false;
      guests.emplace_back(std::move(guest.fd));
      guests.back().say(c.answer.data(), c.answer.size());
      ::shutdown(guests.back().fd.get(), SHUT_WR);
      return false;
    };
    const Error error = thrown<Error>([&] { turns_until({higher.get()}, answer, 5); });
    CHECK(error.status == Status::bootstrap && error.rank == 0);
    CHECK(says(error.what(), c.say));
    CHECK(guests.size() > 1);
  }
}

TEST(a_taken_connection_is_not_given_again) {
  Job job(2);
  const auto lower = job.mesh(0), higher = job.mesh(1);
  CHECK(thrown<Error>([&] { lower->take(1); }).status == Status::internal);
  higher->want(0);
  CHECK(turns_until({lower.get(), higher.get()}, [&] { return lower->connected(1); }));
  const Connection mine = lower->take(1);
  CHECK(lower->connected(1));
  CHECK(says(thrown<Error>([&] { lower->take(1); }).what(), "was taken before"));
}

TEST(two_processes_cannot_be_one_rank) {
  Job job(3);
  const auto lower = job.mesh(0), first = job.mesh(1);
  Mesh second(job.identity(1), secret_of_job(), TcpListener(loopback(), 4), job.doors);
  first->want(0);
  CHECK(turns_until({lower.get(), first.get()},
                    [&] { return lower->connected(1) && first->connected(0); }));
  for (const bool taken : {false, true}) {
    std::optional<Connection> mine;
    if (taken) mine = lower->take(1);
    Mesh again(job.identity(1), secret_of_job(), TcpListener(loopback(), 4), job.doors);
    again.want(0);
    const Error error =
        thrown<Error>([&] { turns_until({lower.get(), &again}, [] { return false; }, 5); });
    CHECK(error.status == Status::bootstrap && error.rank == 0);
    CHECK(says(error.what(), "rank 1 of job 'mesh', attempt 2 cannot join rank 0 at " +
                                 job.doors.front().text()));
    CHECK(says(error.what(), "it is connected to another process that is rank 1"));
    CHECK(turns_until({lower.get()}, [&] { return lower->half_open() == 0; }));
    CHECK(says(lower->standing(2), "rank 1 is connected already"));
    if (taken) check_carries_frames(std::move(*mine), first->take(0));
  }
}

TEST(what_makes_no_mesh_is_refused) {
  Job job(3);
  const auto build = [&](const Identity& self, TcpListener&& door, std::vector<Endpoint> doors) {
    return thrown<Error>(
        [&] { Mesh mesh(self, secret_of_job(), std::move(door), std::move(doors)); });
  };
  const std::vector<Endpoint> two(job.doors.begin(), job.doors.end() - 1);
  CHECK(says(build(job.identity(0), TcpListener(loopback(), 4), two).what(), "2 ranks"));
  CHECK(says(build(job.identity(3), TcpListener(loopback(), 4), job.doors).what(), "rank 3 of 3"));
  const Endpoint everywhere = Endpoint::parse("0.0.0.0:0");
  const Error open = build(job.identity(0), TcpListener(everywhere, 4), job.doors);
  CHECK(open.status == Status::invalid_argument && says(open.what(), "every network"));

  job.doors[1] = loopback();  // without a port
  job.doors[0] = everywhere.with_port(9);
  const auto mesh = job.mesh(2);
  for (const int rank : {-1, 2, 3}) {
    CHECK(thrown<Error>([&] { mesh->want(rank); }).status == Status::invalid_argument);
    CHECK(thrown<Error>([&] { mesh->connected(rank); }).status == Status::invalid_argument);
  }
  CHECK(says(thrown<Error>([&] { mesh->want(1); }).what(), "127.0.0.1:0"));
  CHECK(says(thrown<Error>([&] { mesh->want(0); }).what(), "0.0.0.0:9"));
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// The store that rank 0 keeps for the others where no launcher does.
#include "bootstrap/mesh_directory.h"

#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "instrumented.h"
#include "meeting_of_test.h"

namespace {

using namespace coll;
using namespace coll::testing;

TEST(all_get_what_each_put) {
  for (const int ranks : {1, 2, 9}) {
    const Endpoint at = free_place();
    const auto errors = all_of(ranks, [&](int rank) {
      const auto directory = came(at, rank, ranks);
      for (int round = 0; round < 3; ++round) {
        directory->put(key_of(rank, round), value_of(rank), Deadline(10));
        directory->fence(Deadline(10));
        for (int r = 0; r < ranks; ++r) {
          CHECK(directory->get(key_of(r, round), Deadline(10)) == value_of(r));
        }
      }
      CHECK(says_error([&] { directory->get("nobody", Deadline(1)); }, "no rank put 'nobody'"));
    });
    for (const std::string& error : errors) CHECK(error.empty());
  }
}

TEST(many_ranks_meet_though_few_places_are_for_strangers) {
  const int ranks = check::kShort ? 20 : 150;
  const Endpoint at = free_place();
  const auto errors = all_of(ranks, [&](int rank) {
    const auto directory = came(at, rank, ranks, 60);
    directory->put(key_of(rank, 0), std::to_string(rank), Deadline(30));
    directory->fence(Deadline(60));
    CHECK(directory->get(key_of(ranks - 1, 0), Deadline(1)) == std::to_string(ranks - 1));
  });
  for (const std::string& error : errors) {
    if (!error.empty()) check::fail(error);
  }
}

TEST(another_secret_is_refused_and_the_rank_with_the_right_one_let_in) {
  const Endpoint at = free_place();
  const auto errors = all_of(3, [&](int rank) {
    // The one that does not know it gives up before the two that wait for nobody else.
    const bool knows = rank < 2;
    const auto directory = knows ? came(at, rank, 2) : came(at, 1, 2, 0.3, secret_of_job(7));
    directory->fence(Deadline(10));
  });
  CHECK(errors[0].empty() && errors[1].empty());
  CHECK(!errors[2].empty());
}

TEST(rank_0_says_who_was_refused_and_who_is_missing) {
  const Endpoint at = free_place();
  const auto errors = all_of(2, [&](int rank) {
    came(at, rank, 3, 0.8, rank == 0 ? secret_of_job() : secret_of_job(9))->fence(Deadline(10));
  });
  expect(errors[0], "ranks 1, 2 of job 'mesh', attempt 2 had not come to 127.0.0.1:");
  expect(errors[0], "has not proved that it knows the secret");
  expect(errors[1], "has not met rank 0 within 0.8 s");
  expect(errors[1], "the same secret");
}

TEST(garbage_does_not_get_in_the_way) {
  const Endpoint at = free_place();
  std::atomic<bool> over{false};
  std::thread stranger([&] {
    while (!over) {
      const Connection knock = tcp_begin_connect(at);
      pollfd ready{knock.fd.get(), POLLOUT, 0};
      if (::poll(&ready, 1, 20) == 1 && tcp_connected(knock.fd) == 0) {
        const std::string noise(300, '\xff');
        (void)!::write(knock.fd.get(), noise.data(), noise.size());
      }
    }
  });
  const auto errors = all_of(4, [&](int rank) {
    ::usleep(static_cast<useconds_t>(rank * 50'000));
    const auto directory = came(at, rank, 4);
    directory->put(key_of(rank, 0), value_of(rank), Deadline(10));
    directory->fence(Deadline(10));
  });
  over = true;
  stranger.join();
  for (const std::string& error : errors) CHECK(error.empty());
}

TEST(a_second_process_of_one_rank_is_refused) {
  const Endpoint at = free_place();
  std::atomic<int> first{0};
  const auto errors = all_of(4, [&](int thread) {
    if (thread == 3) {  // rank 2, when both that say to be rank 1 have come
      wait_until([&] { return first != 0; });
      came(at, 2, 3)->fence(Deadline(10));
      return;
    }
    try {
      const auto directory = came(at, std::min(thread, 1), 3);
      directory->fence(Deadline(10));
    } catch (const Error&) {
      ++first;
      throw;
    }
  });
  CHECK(errors[0].empty() && errors[3].empty());
  CHECK(errors[1].empty() != errors[2].empty());
  expect(errors[1] + errors[2], "it is connected to another process that is rank 1");
  expect(errors[1] + errors[2], "two jobs that meet at one port need two names (COLLECTIVES_JOB)");
}

TEST(two_jobs_of_different_names_do_not_mix_at_one_place) {
  const Endpoint at = free_place();
  std::atomic<bool> over{false};
  const auto errors = all_of(3, [&](int thread) {
    if (thread < 2) {
      wait_until([&] { return thread == 0 || over; });
      came(at, thread, 2)->fence(Deadline(10));
      return;
    }
    Identity self = rank_of_job(1, 2);
    self.job = "other";
    try {
      MeshDirectory(self, secret_of_job(), at, 10, Stop());
    } catch (const Error&) {
      over = true;
      throw;
    }
  });
  CHECK(errors[0].empty() && errors[1].empty());
  expect(errors[2], "it belongs to another job than job 'other', attempt 2");
}

TEST(a_port_that_is_taken_and_a_place_that_is_nobodys_are_named) {
  const TcpListener other(loopback(), 1);
  CHECK(says_error([&] { came(other.endpoint(), 0, 2); }, "one that no other program has"));
  CHECK(says_error([&] { came(Endpoint::parse("192.0.2.1:4000"), 0, 2); }, "one of its host's"));
  CHECK(says_error([&] { came(Endpoint::parse("0.0.0.0:4000"), 0, 2); }, "of one interface"));
  CHECK(says_error([&] { came(Endpoint::parse("127.0.0.1"), 0, 2); }, "and a port"));
}

TEST(without_rank_0_the_others_give_up) {
  const std::string words = "has not met rank 0 within 0.2 s";
  CHECK(says_error([&] { came(free_place(), 1, 2, 0.2); }, words));
}

TEST(who_ends_while_others_are_awaited_ends_the_meeting) {
  const Endpoint at = free_place();
  std::atomic<bool> here{false};
  const auto errors = all_of(3, [&](int rank) {
    const auto directory = came(at, rank, 4);  // the last never comes
    if (rank == 1) {
      here = true;
      directory->fence(Deadline(10));
    }
    wait_until([&] { return here.load(); });
  });
  expect(errors[0],
         "rank 2 of job 'mesh', attempt 2 has come to meet the others, and it has ended");
  expect(errors[1], "rank 0 ");
}

// Rank 1 never comes; rank 2 has less patience than rank 0.
std::vector<std::string> rank_2_gives_up(int attempt_of_rank_1 = 0) {
  const Endpoint at = free_place();
  return all_of(3, [&](int rank) {
    if (rank == 1 && attempt_of_rank_1 == 0) return;
    Identity self = rank_of_job(rank, 3);
    if (rank == 1) self.attempt = attempt_of_rank_1;
    MeshDirectory directory(self, secret_of_job(), at, 10, Stop());
    directory.fence(Deadline(0.4));
  });
}

TEST(who_gives_up_says_whom_rank_0_misses_and_all_name_that_rank) {
  const auto errors = rank_2_gives_up();
  const std::string missing = "rank 1 of job 'mesh', attempt 2 had not come to 127.0.0.1:";
  CHECK(errors[0].rfind(missing, 0) == 0);
  expect(errors[0], "; rank 2 has given up: its time was up");
  expect(errors[2], "rank 0 did not answer in time: " + missing);
}

// Rank 1 never comes, rank `culprit` cannot take part, and has less patience than the others.
std::vector<std::string> gives_up_in_trouble(int culprit) {
  const Endpoint at = free_place();
  return all_of(4, [&](int rank) {
    if (rank == 1) return;
    const bool patient = rank != culprit;
    MeshDirectory directory(rank_of_job(rank, 4), secret_of_job(), at, patient ? 20 : 1.5, Stop(),
                            patient ? "" : "X='y' makes no sense");
    directory.fence(Deadline(patient ? 20 : 1.5));
  });
}

TEST(who_gives_up_in_trouble_says_why_and_not_only_whom_it_missed) {
  const std::string missing = "rank 1 of job 'mesh', attempt 2 had not come to 127.0.0.1:";
  const std::string why = "rank 2 cannot take part: X='y' makes no sense; besides, " + missing;
  const auto errors = gives_up_in_trouble(2);
  CHECK(errors[0].rfind(why, 0) == 0);
  expect(errors[3], "rank 0 has given up: " + why);
  const auto of_rank_0 = gives_up_in_trouble(0);
  for (const std::size_t waits : {2, 3}) {
    expect(
        of_rank_0[waits],
        "rank 0 has given up: it cannot take part: X='y' makes no sense; after 1.5 s " + missing);
  }
}

TEST(why_a_rank_was_refused_is_told_to_all_that_wait) {
  const auto errors = rank_2_gives_up(4);
  for (const std::string& error : errors) expect(error, "it is at attempt ");
  for (const int waits : {0, 2}) {
    expect(errors[static_cast<std::size_t>(waits)], "rank 1 of job 'mesh', attempt 2 had not come");
  }
}

TEST(who_is_killed_while_others_are_awaited_is_named_beside_these) {
  const Endpoint at = free_place();
  const auto errors = all_of(2, [&](int rank) { came(at, rank == 0 ? 0 : 2, 3); });
  expect(errors[0],
         "rank 2 of job 'mesh', attempt 2 has come to meet the others, and it has ended");
  expect(errors[0], "rank 1 of job 'mesh', attempt 2 had not come to 127.0.0.1:");
}

TEST(who_gives_up_at_a_fence_names_the_rank_that_has_not_come_there) {
  const Endpoint at = free_place();
  std::atomic<bool> over{false};
  const auto errors = all_of(3, [&](int rank) {
    const auto directory = came(at, rank, 3);
    directory->fence(Deadline(10));  // what was told in this one does not count in the next
    wait_until([&] { return rank != 1 || over; });
    if (rank == 1) return;
    try {
      directory->fence(Deadline(rank == 0 ? 10 : 0.4));
    } catch (const Error&) {
      if (rank == 0) over = true;
      throw;
    }
  });
  expect(errors[0], "rank 1 had not come to the meeting point; rank 2 has given up");
  expect(errors[2], "rank 0 did not answer in time: rank 1 had not come to the meeting point");
}

TEST(who_ends_before_a_fence_is_named_to_all) {
  const Endpoint at = free_place();
  std::atomic<int> here{0};
  const auto errors = all_of(3, [&](int rank) {
    const auto directory = came(at, rank, 3);
    ++here;
    wait_until([&] { return here == 3; });
    if (rank != 2) directory->fence(Deadline(10));
  });
  expect(errors[0], "rank 2 of job 'mesh', attempt 2 ");
  expect(errors[1], "rank 0 has given up: rank 2");
}

TEST(a_fence_that_not_all_reach_has_an_end) {
  const Endpoint at = free_place();
  std::atomic<int> failed{0};
  const auto errors = all_of(2, [&](int rank) {
    const auto directory = came(at, rank, 2);
    if (rank == 1) {
      wait_until([&] { return failed != 0; });
      directory->fence(Deadline(10));
      return;
    }
    try {
      directory->fence(Deadline(0.1));
    } catch (const Error&) {
      ++failed;
      CHECK(says_error([&] { directory->fence(Deadline(1)); }, "did not come"));
      throw;
    }
  });
  expect(errors[0], "rank 1 did not come to the meeting point in time");
  expect(errors[1], "rank 0 has given up: rank 1 did not come");
}

TEST(a_letter_that_is_too_long_is_refused_unread) {
  const TcpListener door(loopback(), 1);
  const Connection peer = tcp_connect(door.endpoint(), Deadline(10));
  Letters letters(const_cast<TcpListener&>(door).accept(), 100);
  std::string head;
  append_text(head, std::string(101, 'x'));
  write_raw(peer.fd, head.data(), 8);
  std::string trouble;
  for (const Deadline end(5); trouble.empty() && !end.passed(); ::usleep(100)) {
    trouble = letters.step();
  }
  expect(trouble, "it announces 101 bytes, where at most 100 are allowed");
}

TEST(more_than_a_rank_may_put_is_refused) {
  const Endpoint at = free_place();
  const auto directory = came(at, 0, 1);
  CHECK(says_error([&] { directory->put("key", std::string(1 << 17, 'x'), Deadline(1)); },
                   "puts more than 65536 bytes"));
}

}  // namespace

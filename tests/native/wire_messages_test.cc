// SPDX-License-Identifier: Apache-2.0
// Messages between machines where something is missing: who is waited for, what a rank had sent
// before it left, and what is told to whom. What they bring is in pairwise_test.cc.
#include <signal.h>

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "child.h"
#include "instrumented.h"
#include "pairwise_of_test.h"

namespace {

using namespace coll::testing;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kLong = 8'000'000;  // elements: more than kernels take

TEST(receives_in_another_order_than_sends) {
  const Comms comms(2, false, Where::several);
  run_ranks(2, [&](int rank) {
    constexpr int kTags = 6;
    const auto n = [](int tag) { return static_cast<std::size_t>(tag % 2 == 0 ? 5 : 100'000); };
    if (rank == 0) {
      for (int tag = 0; tag < kTags; ++tag) send(comms[0], filled(n(tag), tag), 1, tag);
      return;
    }
    coll_message got{};
    CHECK(coll_probe(comms[1], 0, 3, &got, 0) == COLL_OK);
    CHECK(got.source == 0 && got.tag == 3 && got.count == n(3));
    for (int tag = kTags - 1; tag >= 0; --tag) {
      CHECK(receive(comms[1], n(tag), -1, tag, &got) == filled(n(tag), tag));
      CHECK(got.source == 0);
    }
  });
}

// Neither waits for the other to receive, or to be in a call at all but the first.
TEST(short_messages_do_not_wait_for_their_receiver) {
  const Comms comms(2, false, Where::several);
  run_ranks(2, [&](int rank) {
    const int other = 1 - rank;
    for (int i = 0; i < 20; ++i) {
      send(comms[rank], filled(2000, rank + i), other, 7);
      if (i % 5 == 0) CHECK(coll_barrier(comms[rank]) == COLL_OK);
      CHECK(receive(comms[rank], 2000, other, 7) == filled(2000, other + i));
    }
  });
}

TEST(a_message_that_nobody_receives_yet_does_not_hold_up_collectives) {
  const Comms comms(2, false, Where::several);
  run_ranks(2, [&](int rank) {
    const std::vector<std::int32_t> x = filled(kLong, rank);
    coll_request request = 0;
    CHECK(coll_isend(comms[rank], x.data(), kLong, COLL_INT32, 1 - rank, 1, &request) == COLL_OK);
    for (int i = 0; i < 3; ++i) {
      std::int64_t one = 1;
      CHECK(coll_allreduce(comms[rank], &one, &one, 1, COLL_INT64, COLL_SUM) == COLL_OK);
      CHECK(one == 2);
    }
    CHECK(receive(comms[rank], kLong, 1 - rank, 1) == filled(kLong, 1 - rank));
    CHECK(coll_wait(comms[rank], request, nullptr, 0) == COLL_OK);
  });
}

TEST(time_outs_say_who_is_waited_for) {
  const auto told = [](auto mine, const std::string& words) {
    const Comms comms(2, false, Where::several);
    CHECK(mine(comms[0]) == COLL_TIMEOUT);
    if (!says(words)) check::fail(std::string(coll_last_error()) + " instead of " + words);
  };
  static std::int32_t y = 0;
  told([](coll_comm* c) { return coll_recv(c, &y, 1, COLL_INT32, 1, 2, nullptr, 0.1); },
       "recv from rank 1 (tag 2): rank 0 gave up after 0.1 s: rank 1 on host1 has not sent a "
       "message that fits");
  told([](coll_comm* c) { return coll_send(c, &y, 1, COLL_INT32, 1, 2, 0.1); },
       "send to rank 1 (tag 2): rank 0 gave up after 0.1 s: rank 1 on host1 is not there: ");
  told([](coll_comm* c) { return coll_probe(c, -1, -1, nullptr, 0.1); },
       "probe of any rank (any tag): rank 0 gave up after 0.1 s: no rank has sent");
  told([](coll_comm* c) { return coll_recv(c, &y, 1, COLL_INT32, 0, 0, nullptr, 0.1); },
       "a rank that waits for itself waits in vain");
}

TEST(a_message_with_another_tag_is_told) {
  const Comms comms(2, false, Where::several);
  run_ranks(2, [&](int rank) {
    if (rank == 0) return send(comms[0], filled(3, 1), 1, 7);
    std::int32_t y = 0;
    CHECK(coll_recv(comms[1], &y, 1, COLL_INT32, 0, 8, nullptr, 0.6) == COLL_TIMEOUT);
    CHECK(says("has sent a message with tag 7, which no recv asks for, and none that fits"));
  });
}

TEST(a_time_out_of_a_question_harms_nobody) {
  const Comms comms(2, false, Where::several);
  std::atomic<bool> asked{false};
  run_ranks(2, [&](int rank) {
    if (rank == 1) {
      while (!asked.load()) check::nap(1);
      return send(comms[1], {8}, 0, 5);
    }
    std::int32_t y = 0;
    coll_request request = 0;
    CHECK(coll_probe(comms[0], 1, 5, nullptr, 0.02) == COLL_TIMEOUT);
    CHECK(coll_irecv(comms[0], &y, 1, COLL_INT32, 1, 5, &request) == COLL_OK);
    CHECK(coll_wait(comms[0], request, nullptr, 0.02) == COLL_TIMEOUT);
    CHECK(says("recv from rank 1 (tag 5)") && says("; the request goes on"));
    asked.store(true);
    CHECK(coll_wait(comms[0], request, nullptr, 0) == COLL_OK && y == 8);
  });
}

TEST(a_rank_that_left_is_named) {
  using Ask = coll_status (*)(coll_comm*);
  static std::int32_t y = 0;
  const std::vector<std::pair<Ask, const char*>> asks = {
      {[](coll_comm* c) { return coll_recv(c, &y, 1, COLL_INT32, 1, 2, nullptr, 0); },
       "recv from rank 1 (tag 2): rank 1 on host1 "},
      {[](coll_comm* c) { return coll_send(c, &y, 1, COLL_INT32, 1, 2, 0); },
       "send to rank 1 (tag 2): rank 1 on host1 "},
      {[](coll_comm* c) { return coll_probe(c, 1, -1, nullptr, 0); },
       "probe of rank 1 (any tag): rank 1 on host1 "}};
  for (const bool connected : {true, false}) {
    for (const auto& [ask, words] : asks) {
      if (!connected && ask != asks.back().first) continue;
      Comms comms(2, false, Where::several);
      if (connected) {
        run_ranks(2, [&](int rank) { CHECK(coll_barrier(comms[rank]) == COLL_OK); });
      }
      comms.close(1);
      const auto start = Clock::now();
      CHECK(ask(comms[0]) == COLL_PEER_LOST);
      CHECK(Clock::now() - start < check::promised(milliseconds(1500)));
      CHECK(coll_last_error_rank() == 1);
      const char* how = connected ? "closed its communicator" : "does not listen any more";
      if (!says(words) || !says(how)) check::fail(coll_last_error());
      CHECK(coll_barrier(comms[0]) == COLL_PEER_LOST);
    }
  }
}

TEST(who_polls_is_told_as_well) {
  Comms comms(2, false, Where::several);
  run_ranks(2, [&](int rank) { CHECK(coll_barrier(comms[rank]) == COLL_OK); });
  std::int32_t y = 0, there = 0;
  coll_request request = 0;
  CHECK(coll_irecv(comms[0], &y, 1, COLL_INT32, 1, 5, &request) == COLL_OK);
  comms.close(1);
  const auto start = Clock::now();
  // That there is no message is true, and will stay so.
  while (Clock::now() - start < milliseconds(50)) {
    CHECK(coll_iprobe(comms[0], 1, 6, &there, nullptr) == COLL_OK && there == 0);
  }
  coll_status status = COLL_OK;
  while (status == COLL_OK && Clock::now() - start < milliseconds(2500)) {
    status = coll_test(comms[0], request, &there, nullptr);
  }
  CHECK(status == COLL_PEER_LOST && coll_last_error_rank() == 1 && there == 0);
}

TEST(who_waits_in_short_turns_is_told_as_well) {
  for (const int source : {1, -1}) {
    Comms comms(2, false, Where::several);
    run_ranks(2, [&](int rank) { CHECK(coll_barrier(comms[rank]) == COLL_OK); });
    std::int32_t y = 0;
    coll_request request = 0;
    CHECK(coll_irecv(comms[0], &y, 1, COLL_INT32, source, 5, &request) == COLL_OK);
    comms.close(1);
    const auto start = Clock::now();
    coll_status status = COLL_TIMEOUT;
    while (status == COLL_TIMEOUT && Clock::now() - start < milliseconds(4000)) {
      status = coll_wait(comms[0], request, nullptr, 0.002);
    }
    CHECK(status == COLL_PEER_LOST && coll_last_error_rank() == 1);
  }
}

TEST(what_is_long_under_way_is_received_in_short_turns) {
  Comms comms(2, false, Where::several);
  std::atomic<bool> sent{false};
  const std::vector<std::int32_t> values = filled(400000, 7);
  run_ranks(2, [&](int rank) {
    CHECK(coll_barrier(comms[rank]) == COLL_OK);
    if (rank == 1) {
      send(comms[1], {1}, 0, 4);
      send(comms[1], values, 0, 5);
      comms.close(1);
      return sent.store(true);
    }
    std::vector<std::int32_t> y(values.size());
    coll_request request = 0;
    CHECK(receive(comms[0], 1, 1, 4).size() == 1);
    check::nap(300);
    CHECK(coll_irecv(comms[0], y.data(), y.size(), COLL_INT32, 1, 5, &request) == COLL_OK);
    coll_status status = COLL_TIMEOUT;
    while (status == COLL_TIMEOUT) status = coll_wait(comms[0], request, nullptr, 0.001);
    CHECK(status == COLL_OK && y == values);
  });
  CHECK(sent.load());
}

TEST(what_a_rank_sent_before_it_left_is_received) {
  Comms comms(3, false, Where::several);
  std::atomic<bool> left{false};
  run_ranks(3, [&](int rank) {
    CHECK(coll_barrier(comms[rank]) == COLL_OK);
    if (rank == 2) return left.store(true);
    if (rank == 1) {
      send(comms[1], filled(1000, 4), 0, 6);
      send(comms[1], filled(3, 5), 0, 6);
      comms.close(1);
      return;
    }
    check::nap(100);
    std::int32_t y = 0;
    CHECK(receive(comms[0], 1000, 1, 6) == filled(1000, 4));
    CHECK(receive(comms[0], 3, -1, 6) == filled(3, 5));
    CHECK(coll_iprobe(comms[0], -1, -1, &y, nullptr) == COLL_OK && y == 0);
    while (!left.load()) check::nap(1);
    comms.close(2);
    CHECK(coll_recv(comms[0], &y, 1, COLL_INT32, -1, -1, nullptr, 0) == COLL_PEER_LOST);
    CHECK(says("recv from any rank (any tag): rank 2 on host2 ") && says("as all others have"));
  });
}

// Rank 2 closes in order, rank 1 does not come to it: its end says nothing of itself, and is no
// answer to anybody who asks for its messages, polling or for those of all.
TEST(a_rank_that_was_killed_has_not_left) {
  using Ask = coll_status (*)(coll_comm*);
  static std::int32_t there = 0;
  const std::vector<std::pair<Ask, const char*>> asks = {
      {[](coll_comm* c) { return coll_iprobe(c, 1, -1, &there, nullptr); }, "probe of rank 1"},
      {[](coll_comm* c) { return coll_iprobe(c, -1, -1, &there, nullptr); }, "probe of any rank"},
      {[](coll_comm* c) { return coll_probe(c, -1, 3, nullptr, 0); }, "probe of any rank (tag 3)"},
      {[](coll_comm* c) { return coll_recv(c, &there, 1, COLL_INT32, -1, 3, nullptr, 0); },
       "recv from any rank (tag 3)"}};
  for (const auto& [ask, words] : asks) {
    WiredJob job(3);
    const auto live = [&](int rank) {
      job.close_all_but(rank);
      coll_comm* comm = job.join(rank);
      CHECK(coll_barrier(comm) == COLL_OK);
      if (rank == 1) ::raise(SIGKILL);
      if (rank == 2) {
        coll_close(comm);
        return;
      }
      coll_status status = COLL_OK;
      for (const auto end = Clock::now() + milliseconds(4000); status == COLL_OK;) {
        CHECK(Clock::now() < end);
        status = ask(comm);
      }
      CHECK(status == COLL_PEER_LOST && coll_last_error_rank() == 1);
      if (!says(words) || !says("rank 1 on host1 is lost")) check::fail(coll_last_error());
    };
    std::vector<check::Child> children;
    for (int rank = 0; rank < 3; ++rank) children.emplace_back([&, rank] { live(rank); });
    job.close_all_but(-1);
    CHECK(children[0].wait() == 0 && children[1].wait() == 128 + SIGKILL);
    CHECK(children[2].wait() == 0);
  }
}

TEST(a_failure_ends_the_messages_of_all) {
  const Comms comms(3, false, Where::several);
  run_ranks(3, [&](int rank) {
    CHECK(coll_barrier(comms[rank]) == COLL_OK);
    if (rank == 2) {
      check::nap(50);
      CHECK(coll_abort(comms[2], "enough") == COLL_OK);
      return;
    }
    std::vector<std::int32_t> y(kLong);
    const coll_status status =
        rank == 0 ? coll_recv(comms[0], y.data(), kLong, COLL_INT32, 1, 0, nullptr, 0)
                  : coll_send(comms[1], y.data(), kLong, COLL_INT32, 2, 0, 0);
    CHECK(status == COLL_ABORTED && says("rank 2 aborted: enough"));
    CHECK(coll_send(comms[rank], y.data(), 1, COLL_INT32, 2, 0, 0) == COLL_ABORTED);
  });
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// Message calls of ranks that are threads, through the C interface: they bring what was sent, end
// in every case, and go on beside collectives.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "check.h"
#include "child.h"
#include "instrumented.h"
#include "pairwise_of_test.h"

namespace {

using namespace coll::testing;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kLong = 100000;  // elements: many times the ring between two ranks

TEST(a_ring_of_sendrecv) {
  for (int turn = 2; turn <= 11; ++turn) {
    const int p = turn / 2;
    const Comms comms(p, false, kWheres[turn % 2]);
    run_ranks(p, [&](int rank) {
      for (const std::size_t n : {std::size_t{0}, std::size_t{3}, kLong}) {
        const std::vector<std::int32_t> x = filled(n, rank);
        std::vector<std::int32_t> y(n, -1);
        coll_message got{};
        const int to = (rank + 1) % p, from = (rank + p - 1) % p;
        CHECK(coll_sendrecv(comms[rank], x.data(), n, COLL_INT32, to, 5, y.data(), n, COLL_INT32,
                            from, 5, &got, 0) == COLL_OK);
        CHECK(y == filled(n, from));
        CHECK(got.source == from && got.tag == 5 && got.dtype == COLL_INT32 && got.count == n);
      }
    });
  }
}

TEST(a_shorter_message_fills_the_beginning) {
  for (const Where where : kWheres) {
    const Comms comms(2, false, where);
    run_ranks(2, [&](int rank) {
      if (rank == 0) return send(comms[0], filled(3, 9), 1, 0);
      std::vector<std::int32_t> y(5, -1);
      coll_message got{};
      CHECK(coll_recv(comms[1], y.data(), 5, COLL_INT32, 0, 0, &got, 0) == COLL_OK);
      CHECK(got.count == 3 && y[2] == filled(3, 9)[2] && y[3] == -1);
    });
  }
}

TEST(a_message_that_is_too_long_is_lost_and_all_goes_on) {
  for (const Where where : kWheres) {
    const Comms comms(2, false, where);
    run_ranks(2, [&](int rank) {
      for (const std::size_t n : {std::size_t{8}, kLong}) {
        if (rank == 0) {
          send(comms[0], filled(n, 1), 1, 3);
          send(comms[0], filled(4, 2), 1, 3);
          continue;
        }
        std::vector<std::int32_t> y(4, -1);
        coll_message got{};
        CHECK(coll_recv(comms[1], y.data(), 4, COLL_INT32, 0, 3, &got, 0) == COLL_INVALID_ARGUMENT);
        CHECK(says("recv from rank 0 (tag 3): the message has " + std::to_string(n) + " int32"));
        CHECK(got.count == n && y == std::vector<std::int32_t>(4, -1));
        CHECK(receive(comms[1], 4, 0, 3) == filled(4, 2));
      }
      CHECK(coll_barrier(comms[rank]) == COLL_OK);
    });
  }
}

TEST(another_dtype_ends_the_group_and_names_both) {
  for (const Where where : kWheres) {
    const Comms comms(2, false, where);
    run_ranks(2, [&](int rank) {
      if (rank == 0) send(comms[0], filled(2, 1), 1, 3);
      double y = 0;
      CHECK((rank == 1 ? coll_recv(comms[1], &y, 1, COLL_FLOAT64, 0, 3, nullptr, 0)
                       : coll_barrier(comms[0])) == COLL_MISMATCH);
      CHECK(says("recv from rank 0 (tag 3): rank 0 sends 2 int32, rank 1 receives float64"));
      CHECK(coll_last_error_rank() == 0);
      CHECK(coll_send(comms[rank], &y, 1, COLL_FLOAT64, 0, 0, 0) == COLL_MISMATCH);
    });
  }
}

// ---- waiting in vain
// -----------------------------------------------------------------------------

TEST(time_outs_say_what_the_other_rank_does) {
  const auto told = [](auto other, auto mine, const std::string& words) {
    std::string said;
    for (const int head_start : {100, 400, 2000}) {  // until the other is where it is to be found
      const Comms comms(2);
      run_ranks(2, [&](int rank) {
        if (rank == 1) return static_cast<void>(other(comms[1]));
        check::nap(head_start);
        CHECK(mine(comms[0]) == COLL_TIMEOUT);
        said = coll_last_error();
        coll_abort(comms[0], "enough");  // who was only asked would wait on
      });
      if (said.find(words) != std::string::npos) return;
    }
    check::fail(said + " instead of " + words);
  };
  static std::int32_t y = 0;
  static const std::vector<std::int32_t> x = filled(kLong, 1);
  const auto nothing = [](coll_comm*) { return COLL_OK; };
  const auto barrier = [](coll_comm* c) { return coll_barrier(c); };
  const auto wait = [](coll_comm* c) {
    return coll_recv(c, &y, 1, COLL_INT32, 1, 2, nullptr, 0.2);
  };
  const auto send_long = [](int to, double s) {
    return [=](coll_comm* c) { return coll_send(c, x.data(), kLong, COLL_INT32, to, 0, s); };
  };
  told(nothing, wait,
       "recv from rank 1 (tag 2): rank 0 gave up after 0.2 s: rank 1 is alive and has not sent a "
       "message that fits");
  told(
      barrier, [](coll_comm* c) { return coll_probe(c, 1, -1, nullptr, 0.2); },
      "has not sent a message that fits, but called barrier #1, which rank 0 has not");
  told([](coll_comm* c) { return coll_send(c, &y, 1, COLL_INT32, 0, 7, 0); }, wait,
       "rank 1 has sent a message with tag 7, which no recv asks for, and none that fits");
  told(send_long(0, 5), send_long(1, 0.2),
       "send to rank 1 (tag 0): rank 0 gave up after 0.2 s: rank 1 is itself blocked in send to "
       "rank 0 (tag 0): where two ranks send to each other, use sendrecv or isend");
  told(
      nothing, [](coll_comm* c) { return coll_probe(c, -1, -1, nullptr, 0.1); },
      "probe of any rank (any tag): rank 0 gave up after 0.1 s: no rank has sent");
  told(
      nothing, [](coll_comm* c) { return coll_recv(c, &y, 1, COLL_INT32, 0, 0, nullptr, 0.1); },
      "a rank that waits for itself waits in vain");
  told([](coll_comm* c) { return coll_probe(c, 0, 8, nullptr, 5); },
       [](coll_comm* c) {
         check::nap(50);
         return coll_collective(c, COLL_BARRIER, nullptr, nullptr, 0, 0, 0, 0, -1, -1, 0.2);
       },
       "rank 1 is alive but blocked in probe of rank 0 (tag 8)");
}

TEST(a_rank_that_left_is_named) {
  const auto lost = [](auto call, const char* words) {
    Comms comms(3);
    comms.close(1);
    const auto start = Clock::now();
    CHECK(call(comms[0]) == COLL_PEER_LOST);
    CHECK(Clock::now() - start < check::promised(milliseconds(1000)));
    CHECK(coll_last_error_rank() == 1);
    CHECK(says("rank 1 (pid ") && says(words));
    CHECK(coll_barrier(comms[2]) == COLL_PEER_LOST);
  };
  static std::int32_t y = 0;
  lost([](coll_comm* c) { return coll_recv(c, &y, 1, COLL_INT32, 1, 2, nullptr, 0); },
       "recv from rank 1 (tag 2): ");
  lost([](coll_comm* c) { return coll_send(c, &y, 1, COLL_INT32, 1, 2, 0); },
       "send to rank 1 (tag 2): ");
  lost([](coll_comm* c) { return coll_probe(c, 1, -1, nullptr, 0); },
       "probe of rank 1 (any tag): ");
  lost(
      [](coll_comm* c) {
        coll_request request = 0;
        CHECK(coll_irecv(c, &y, 1, COLL_INT32, 1, 2, &request) == COLL_OK);
        return coll_wait(c, request, nullptr, 0);
      },
      "closed its communicator");
}

TEST(who_polls_is_told_as_well) {
  Comms comms(2);
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
  while (status == COLL_OK && Clock::now() - start < milliseconds(1000)) {
    status = coll_test(comms[0], request, &there, nullptr);
  }
  CHECK(status == COLL_PEER_LOST && coll_last_error_rank() == 1 && there == 0);
}

TEST(a_time_out_of_a_question_harms_nobody) {
  const Comms comms(2);
  std::int32_t y = 0;
  coll_request request = 0;
  CHECK(coll_probe(comms[0], 1, 5, nullptr, 0.02) == COLL_TIMEOUT);
  CHECK(says("probe of rank 1 (tag 5): rank 0 gave up after 0.02 s"));
  CHECK(coll_irecv(comms[0], &y, 1, COLL_INT32, 1, 5, &request) == COLL_OK);
  CHECK(coll_wait(comms[0], request, nullptr, 0.02) == COLL_TIMEOUT);
  CHECK(says("recv from rank 1 (tag 5)") && says("; the request goes on"));
  send(comms[1], {8}, 0, 5);
  CHECK(coll_wait(comms[0], request, nullptr, 0.02) == COLL_OK && y == 8);
  // That of a call which moves something ends it for all.
  CHECK(coll_recv(comms[0], &y, 1, COLL_INT32, 1, 5, nullptr, 0.02) == COLL_TIMEOUT);
  CHECK(coll_barrier(comms[1]) == COLL_TIMEOUT);
}

TEST(for_any_rank_a_call_waits_until_all_have_left) {
  Comms comms(3);
  std::int32_t y = 0;
  send(comms[1], filled(1, 4), 0, 6);
  comms.close(1);
  // What was sent before is still received.
  CHECK(receive(comms[0], 1, 1, 6) == filled(1, 4));
  CHECK(coll_iprobe(comms[0], -1, -1, &y, nullptr) == COLL_OK && y == 0);
  comms.close(2);
  CHECK(coll_recv(comms[0], &y, 1, COLL_INT32, -1, -1, nullptr, 0) == COLL_PEER_LOST);
  CHECK(says("recv from any rank (any tag): rank 2 (pid ") && says("as all others have"));
}

TEST(an_abort_ends_a_blocked_call) {
  for (const Where where : kWheres) {
    const Comms comms(2, false, where);
    run_ranks(2, [&](int rank) {
      // Between machines only ranks that are connected learn why.
      if (where == Where::several) CHECK(coll_barrier(comms[rank]) == COLL_OK);
      if (rank == 1) {
        check::nap(50);
        CHECK(coll_abort(comms[1], "enough") == COLL_OK);
        return;
      }
      std::int32_t y = 0;
      CHECK(coll_recv(comms[0], &y, 1, COLL_INT32, 1, 0, nullptr, 0) == COLL_ABORTED);
      CHECK(says("rank 1 aborted: enough"));
    });
  }
}

TEST(a_blocked_call_comes_up_for_air) {
  for (const Where where : kWheres) {
    const Comms comms(2, true, where);
    const std::vector<std::int32_t> x = filled(kLong, 6);
    std::vector<std::int32_t> y(kLong);
    coll_message got{};
    CHECK(coll_recv(comms[0], y.data(), kLong, COLL_INT32, 1, 4, &got, 0) == COLL_IN_PROGRESS);
    CHECK(coll_barrier(comms[0]) == COLL_INVALID_ARGUMENT);
    CHECK(coll_recv(comms[0], y.data(), 1, COLL_INT32, 1, 4, &got, 0) == COLL_INVALID_ARGUMENT);
    CHECK(says("still in progress"));
    run_ranks(2, [&](int rank) {
      coll_status status = COLL_IN_PROGRESS;
      if (rank == 1) {
        status = coll_send(comms[1], x.data(), kLong, COLL_INT32, 0, 4, 0);
      }
      while (status == COLL_IN_PROGRESS) status = coll_resume(comms[rank]);
      CHECK(status == COLL_OK);
    });
    CHECK(y == x && got.count == kLong);
    CHECK(coll_resume(comms[0]) == COLL_INVALID_ARGUMENT);
  }
}

// ---- beside the caller
// ---------------------------------------------------------------------------

TEST(requests_go_on_beside_collectives) {
  for (const Where where : kWheres) {
    const Comms comms(3, false, where);
    run_ranks(3, [&](int rank) {
      coll_comm* comm = comms[rank];
      const int next = (rank + 1) % 3, before = (rank + 2) % 3;
      const std::vector<std::int32_t> x = filled(kLong, rank);
      // The receiver meets the message before it comes to the barrier, and the other way round.
      coll_request request = 0;
      CHECK(coll_isend(comm, x.data(), kLong, COLL_INT32, next, 1, &request) == COLL_OK);
      if (rank == 0) CHECK(coll_barrier(comm) == COLL_OK);
      CHECK(receive(comm, kLong, before, 1) == filled(kLong, before));
      if (rank != 0) CHECK(coll_barrier(comm) == COLL_OK);
      CHECK(coll_wait(comm, request, nullptr, 0) == COLL_OK);

      std::vector<std::int32_t> y(kLong, -1);
      CHECK(coll_irecv(comm, y.data(), kLong, COLL_INT32, before, 2, &request) == COLL_OK);
      if (rank == 1) CHECK(coll_barrier(comm) == COLL_OK);
      send(comm, x, next, 2);
      if (rank != 1) CHECK(coll_barrier(comm) == COLL_OK);
      coll_message got{};
      CHECK(coll_wait(comm, request, &got, 0) == COLL_OK);
      CHECK(got.source == before && y == filled(kLong, before));
    });
  }
}

TEST(requests_end_once) {
  for (const Where where : kWheres) {
    const Comms comms(1, false, where);
    coll_comm* comm = comms[0];
    std::int32_t x = 5, y = 0, done = 9;
    coll_request send_request = 0, receive_request = 0;
    CHECK(coll_irecv(comm, &y, 1, COLL_INT32, 0, 0, &receive_request) == COLL_OK);
    CHECK(coll_test(comm, receive_request, &done, nullptr) == COLL_OK && done == 0);
    CHECK(coll_isend(comm, &x, 1, COLL_INT32, 0, 0, &send_request) == COLL_OK);
    CHECK(send_request != 0 && send_request != receive_request);
    coll_message got{};
    CHECK(coll_test(comm, receive_request, &done, &got) == COLL_OK && done == 1);
    CHECK(y == 5 && got.count == 1);
    CHECK(coll_wait(comm, send_request, nullptr, 0) == COLL_OK);
    for (const coll_request gone :
         {coll_request{0}, send_request, receive_request, ~coll_request{0}}) {
      CHECK(coll_wait(comm, gone, nullptr, 0) == COLL_INVALID_ARGUMENT && says("no such request"));
      CHECK(coll_test(comm, gone, &done, nullptr) == COLL_INVALID_ARGUMENT && done == 0);
    }
    // A new one has another name.
    coll_request again = 0;
    CHECK(coll_isend(comm, &x, 1, COLL_INT32, 0, 0, &again) == COLL_OK);
    CHECK(again != send_request && again != receive_request);
    for (const coll_request gone : {send_request, receive_request}) {
      CHECK(coll_wait(comm, gone, nullptr, 0) == COLL_INVALID_ARGUMENT && says("no such request"));
    }
    std::int32_t small[2] = {1, 2};
    CHECK(coll_wait(comm, again, nullptr, 0) == COLL_OK);
    CHECK(receive(comm, 1, 0, 0) == std::vector<std::int32_t>{5});
    CHECK(coll_irecv(comm, &y, 1, COLL_INT32, 0, 0, &receive_request) == COLL_OK);
    CHECK(coll_send(comm, small, 2, COLL_INT32, 0, 0, 0) == COLL_OK);
    CHECK(coll_test(comm, receive_request, &done, &got) == COLL_INVALID_ARGUMENT);
    CHECK(done == 1 && got.count == 2 && says("room for 1"));
  }
}

TEST(what_is_refused_leaves_the_rank_as_it_was) {
  for (const Where where : kWheres) {
    const Comms comms(2, false, where);
    coll_comm* c = comms[0];
    std::int32_t x = 0;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const std::vector<coll_status> refused = {
        coll_send(c, &x, 1, COLL_INT32, 2, 0, 0),
        coll_send(c, &x, 1, COLL_INT32, -1, 0, 0),
        coll_send(c, &x, 1, COLL_INT32, 1, -1, 0),
        coll_send(c, &x, 1, 99, 1, 0, 0),
        coll_send(c, &x, 1, -1, 1, 0, 0),
        coll_send(c, nullptr, 1, COLL_INT32, 1, 0, 0),
        coll_send(c, &x, ~std::size_t{0}, COLL_INT32, 1, 0, 0),
        coll_send(c, &x, 1, COLL_INT32, 1, 0, -1),
        coll_send(c, &x, 1, COLL_INT32, 1, 0, nan),
        coll_recv(c, &x, 1, COLL_INT32, 2, 0, nullptr, 0),
        coll_recv(c, &x, 1, COLL_INT32, -2, 0, nullptr, 0),
        coll_recv(c, &x, 1, COLL_INT32, 1, -2, nullptr, 0),
        coll_recv(c, &x, 1, 99, 1, 0, nullptr, 0),
        coll_recv(c, nullptr, 1, COLL_INT32, 1, 0, nullptr, 0),
        coll_probe(c, 2, 0, nullptr, 0),
        coll_iprobe(c, 0, 0, nullptr, nullptr),
        coll_isend(c, &x, 1, COLL_INT32, 1, 0, nullptr),
        coll_irecv(c, &x, 1, COLL_INT32, 1, 0, nullptr),
        coll_test(c, 1, nullptr, nullptr)};
    for (std::size_t i = 0; i < refused.size(); ++i) {
      if (refused[i] != COLL_INVALID_ARGUMENT) check::fail("call " + std::to_string(i));
    }
    CHECK(coll_send(nullptr, &x, 1, COLL_INT32, 0, 0, 0) == COLL_CLOSED);
    std::int32_t there = 1;
    CHECK(coll_iprobe(comms[1], -1, -1, &there, nullptr) == COLL_OK && there == 0);
  }
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// A message against a collective: both ranks are told, soon; and no program is that could go on.
#include "communicator/deadlock.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "child.h"
#include "instrumented.h"
#include "pairwise_of_test.h"

namespace {

using namespace coll;
using namespace coll::testing;
using check::nap;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kLong = 200000;  // elements: more than a ring holds

struct Buffers {
  std::vector<std::int32_t> in = filled(kLong, 1), out = std::vector<std::int32_t>(kLong);
};
using Action = std::function<coll_status(coll_comm*, Buffers&)>;

Action recv(int source, int tag = 3, std::size_t room = 4) {
  return [=](coll_comm* c, Buffers& b) {
    return coll_recv(c, b.out.data(), room, COLL_INT32, source, tag, nullptr, 0);
  };
}
Action send_long(int to) {
  return [=](coll_comm* c, Buffers& b) {
    return coll_send(c, b.in.data(), kLong, COLL_INT32, to, 3, 0);
  };
}
Action collective(coll_kind kind, int root = 0, std::size_t count = 12) {
  return [=](coll_comm* c, Buffers& b) {
    return coll_collective(c, kind, b.in.data(), b.out.data(), kind == COLL_BARRIER ? 0 : count,
                           COLL_INT32, COLL_SUM, root, -1, -1, 0);
  };
}
// Sends, and does not wait for it.
Action isend(int to, int tag = 3, std::size_t n = 4) {
  return [=](coll_comm* c, Buffers& b) {
    coll_request request = 0;
    return coll_isend(c, b.in.data(), n, COLL_INT32, to, tag, &request);
  };
}
Action irecv(int source, int tag = 3, std::size_t n = 4) {
  return [=](coll_comm* c, Buffers& b) {
    coll_request request = 0;
    return coll_irecv(c, b.out.data(), n, COLL_INT32, source, tag, &request);
  };
}
Action late(int ms) {
  return [=](coll_comm*, Buffers&) {
    nap(ms);
    return COLL_OK;
  };
}
using Program = std::vector<Action>;

coll_status run(coll_comm* comm, const Program& program) {
  // What was posted and not waited for uses them to the end of the communicator.
  static thread_local std::vector<std::unique_ptr<Buffers>> kept;
  for (const Action& act : program) {
    kept.push_back(std::make_unique<Buffers>());
    const coll_status status = act(comm, *kept.back());
    if (status != COLL_OK) return status;
  }
  return COLL_OK;
}

// Rank 0 waits for rank 1, or any, and all others for rank 0 in a collective.
void told(int p, const Program& mine, const Program& theirs,
          const std::vector<std::string>& words) {
  const Comms comms(p);
  std::vector<std::string> said(static_cast<std::size_t>(p));
  const auto start = Clock::now();
  run_ranks(p, [&](int rank) {
    const coll_status status = run(comms[rank], rank == 0 ? mine : theirs);
    said[static_cast<std::size_t>(rank)] = coll_last_error();
    if (status != COLL_MISMATCH) check::fail(words.front() + ": " + coll_last_error());
    CHECK(coll_last_error_rank() == 1);
  });
  CHECK(Clock::now() - start < check::promised(milliseconds(1000)));
  for (const std::string& text : said) CHECK(text == said.front());
  for (const std::string& each : words) {
    if (said.front().find(each) == std::string::npos) check::fail(said.front() + " lacks " + each);
  }
}

void goes_on(int p, const std::vector<Program>& programs) {
  const Comms comms(p);
  run_ranks(p, [&](int rank) {
    expect_ok(run(comms[rank], programs[static_cast<std::size_t>(rank)]));
    expect_ok(coll_barrier(comms[rank]));
  });
}

TEST(both_are_told_who_waits_for_whom) {
  told(2, {recv(1)}, {collective(COLL_ALLREDUCE)},
       {"recv from rank 1 (tag 3): the ranks wait for each other: rank 0 in this message, and rank "
        "1 in allreduce #1, allreduce of 12 int32 (sum, ",
        "which needs rank 0; rank 1 has no message for it on its way"});
  told(2, {send_long(1)}, {collective(COLL_BARRIER)},
       {"send to rank 1 (tag 3): the ranks wait for each other: rank 0 in this message, and rank 1 "
        "in barrier #1, ",
        "which needs rank 0; rank 1 has no receive for it"});
  told(3, {recv(kAny)}, {collective(COLL_BARRIER)},
       {"recv from any rank (tag 3): ", "rank 1 has no message for it on its way, nor has any"});
}

TEST(whatever_the_message) {
  const Program barrier{collective(COLL_BARRIER)};
  const auto exchange = [](coll_comm* c, Buffers& b) {
    return coll_sendrecv(c, b.in.data(), 4, COLL_INT32, 1, 3, b.out.data(), 4, COLL_INT32, 1, 3,
                         nullptr, 0);
  };
  told(2, {exchange}, barrier, {"recv from rank 1 (tag 3): "});
  const auto probe = [](coll_comm* c, Buffers&) { return coll_probe(c, 1, -1, nullptr, 0); };
  told(2, {probe}, barrier, {"probe of rank 1 (any tag): "});
  const auto wait = [](coll_comm* c, Buffers& b) {
    coll_request request = 0;
    expect_ok(coll_irecv(c, b.out.data(), 4, COLL_INT32, 1, 3, &request));
    return coll_wait(c, request, nullptr, 0);
  };
  told(2, {wait}, barrier, {"recv from rank 1 (tag 3): "});
  told(2, {recv(1)}, {isend(0, 7), collective(COLL_BARRIER)}, {"recv from rank 1 (tag 3): "});
  told(2, {recv(1)}, {isend(0, 7, kLong), collective(COLL_BARRIER)}, {"recv from rank 1 (tag 3)"});
  told(3, {recv(kAny)}, {irecv(0), collective(COLL_BARRIER)}, {"recv from any rank"});
  told(2, {late(200), recv(1)}, barrier, {"recv from rank 1"});
  told(2, {recv(1)}, {late(200), collective(COLL_BARRIER)}, {"recv from rank 1"});
}

TEST(whatever_the_collective_that_needs_it) {
  for (const coll_kind kind :
       {COLL_ALLREDUCE, COLL_REDUCE_SCATTER, COLL_ALLGATHER, COLL_ALLTOALL, COLL_BARRIER}) {
    for (const std::size_t count : {std::size_t{12}, kLong / 10 * 3}) {
      told(3, {recv(1)}, {collective(kind, 0, count)}, {"which needs rank 0"});
    }
  }
  for (const coll_kind kind : {COLL_BROADCAST, COLL_SCATTER}) {
    told(2, {recv(1)}, {collective(kind, 0)}, {"root 0"});
  }
  for (const coll_kind kind : {COLL_REDUCE, COLL_GATHER}) {
    told(2, {recv(1)}, {collective(kind, 1)}, {"root 1"});
  }
  for (const coll_kind kind : {COLL_SCAN, COLL_EXSCAN}) {
    told(2, {recv(1)}, {collective(kind)}, {"which needs rank 0"});
  }
}

TEST(a_rank_may_be_calls_ahead) {
  told(2, {collective(COLL_ALLREDUCE), recv(1)},
       {collective(COLL_ALLREDUCE), collective(COLL_BROADCAST, 1), collective(COLL_ALLREDUCE)},
       {"rank 1 in allreduce #3"});
}

TEST(what_can_go_on_goes_on) {
  const Action meet = collective(COLL_ALLREDUCE), slow = late(150);
  for (const std::size_t n : {std::size_t{4}, kLong}) {
    const Action get = recv(1, 3, n);
    goes_on(2, {{slow, get, meet}, {isend(0, 3, n), meet}});
    goes_on(2, {{get, meet}, {slow, isend(0, 3, n), meet}});
    goes_on(2, {{recv(kAny, 3, n), meet}, {isend(0, 3, n), slow, meet}});
    goes_on(2, {{slow, get, meet}, {isend(0, 7, kLong), isend(0, 3, n), meet, slow}});
  }
  goes_on(2, {{slow, send_long(1), meet}, {irecv(0, 3, kLong), meet}});
  goes_on(2, {{slow, send_long(1), meet}, {irecv(kAny, 3, kLong), meet}});
  // Of these rank 1 leaves without rank 0.
  for (const coll_kind kind : {COLL_BROADCAST, COLL_SCATTER}) {
    goes_on(2, {{recv(1), collective(kind, 1)}, {collective(kind, 1), slow, isend(0)}});
  }
  for (const coll_kind kind : {COLL_REDUCE, COLL_GATHER}) {
    goes_on(2, {{recv(1), collective(kind, 0)}, {collective(kind, 0), slow, isend(0)}});
  }
  goes_on(3, {{recv(2), meet}, {meet}, {slow, isend(0), meet}});
  goes_on(3, {{recv(kAny), meet}, {meet}, {slow, isend(0), meet}});
}

TEST(a_question_of_a_limited_time_harms_nobody) {
  const Comms comms(2);
  run_ranks(2, [&](int rank) {
    if (rank == 0) {
      std::int32_t y = 0, done = 1;
      coll_request request = 0;
      CHECK(coll_probe(comms[0], 1, -1, nullptr, 0.2) == COLL_TIMEOUT);
      expect_ok(coll_irecv(comms[0], &y, 1, COLL_INT32, 1, 3, &request));
      CHECK(coll_wait(comms[0], request, nullptr, 0.2) == COLL_TIMEOUT);
      for (int turn = 0; turn < 20; ++turn, nap(10)) {
        expect_ok(coll_test(comms[0], request, &done, nullptr));
        CHECK(done == 0);
      }
      expect_ok(coll_barrier(comms[0]));
      expect_ok(coll_wait(comms[0], request, nullptr, 0));
    } else {
      std::int32_t x = 1;
      expect_ok(coll_barrier(comms[1]));
      expect_ok(coll_send(comms[1], &x, 1, COLL_INT32, 0, 3, 0));
    }
    expect_ok(coll_barrier(comms[rank]));
  });
}

TEST(which_ranks_a_call_needs) {
  CallNote call;
  const auto of = [&](Kind kind, int rank, int other) {
    call.kind = static_cast<int>(kind);
    return needs(call, rank, other);
  };
  CHECK(of(Kind::barrier, 1, 0) && !of(Kind::allreduce, 1, 0));
  call.count = 1;
  call.root = 2;
  CHECK(of(Kind::allreduce, 1, 0) && of(Kind::alltoall, 1, 0));
  CHECK(of(Kind::broadcast, 1, 2) && !of(Kind::broadcast, 2, 1) && !of(Kind::scatter, 1, 0));
  CHECK(of(Kind::reduce, 2, 1) && !of(Kind::reduce, 1, 2) && !of(Kind::gather, 1, 0));
  CHECK(of(Kind::scan, 1, 0) && !of(Kind::exscan, 0, 1));
  call.parts = true;
  CHECK(!of(Kind::allgather, 1, 0) && of(Kind::barrier, 1, 0));
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// Communicators between machines, through the C interface: calls in a row, persistent ones, and
// threads that abort beside a call.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "instrumented.h"
#include "transport/faults.h"
#include "transport/tcp_socket.h"
#include "wired_of_test.h"

namespace {

using namespace coll::testing;

bool says(const std::string& words) {
  return std::string(coll_last_error()).find(words) != std::string::npos;
}

coll_call sum_of(const std::vector<double>& in, std::vector<double>& out,
                 const char* agreed = nullptr) {
  coll_call call{};
  call.size = sizeof call;
  call.kind = COLL_ALLREDUCE;
  call.dtype = COLL_FLOAT64;
  call.op = COLL_SUM;
  call.input = in.data();
  call.output = out.data();
  call.count = in.size();
  call.algorithm = -1;
  call.mode = COLL_MODE_AUTO;
  call.agreed = agreed;
  return call;
}

// f(rank, comm), and the communicators are closed.
template <class Work>
void on_wired(int p, Work work, const WiredOptions& options = {}) {
  const auto comms = wired(p, options);
  run_ranks(p, [&](int rank) {
    coll_comm* comm = comms[static_cast<std::size_t>(rank)];
    work(rank, comm);
    coll_close(comm);
  });
}

TEST(calls_in_a_row_of_any_length) {
  for (const int p : {1, 2, 3, 4}) {
    on_wired(p, [p](int rank, coll_comm* comm) {
      for (const std::size_t n : {0, 1, 7, 3, 3, 50'000, 7}) {
        std::vector<double> x(n, rank + 1.0), out(n, -1);
        const coll_call call = sum_of(x, out);
        CHECK(coll_run(comm, &call) == COLL_OK);
        CHECK(out == std::vector<double>(n, p * (p + 1) / 2.0));
      }
    });
  }
}

// Rank 1 prepares its calls on their own, so nothing of one before can stand in for them.
TEST(a_call_without_words_is_not_the_one_before_it_that_had_some) {
  on_wired(2, [](int rank, coll_comm* comm) {
    std::vector<double> x(3, 1), out(3);
    for (const char* words : {"of a group", static_cast<const char*>(nullptr), "of another", "x"}) {
      const coll_call call = sum_of(x, out, words);
      coll_persistent* own = nullptr;
      if (rank == 1) CHECK(coll_persistent_new(comm, &call, &own) == COLL_OK);
      const coll_status status = rank == 1 ? coll_run_persistent(own) : coll_run(comm, &call);
      if (status != COLL_OK) check::fail(coll_last_error());
      CHECK(coll_persistent_free(own) == COLL_OK);
    }
  });
}

TEST(other_words_than_those_of_the_call_before_are_compared) {
  on_wired(2, [](int rank, coll_comm* comm) {
    std::vector<double> x(3, 1), out(3);
    const coll_call first = sum_of(x, out, "alike");
    CHECK(coll_run(comm, &first) == COLL_OK);
    const coll_call second = sum_of(x, out, rank == 0 ? "one" : "other");
    CHECK(coll_run(comm, &second) == COLL_MISMATCH);
  });
  // In the place of those of the call before.
  on_wired(2, [](int rank, coll_comm* comm) {
    std::vector<double> x(3, 1), out(3);
    std::string words = "alike";
    const coll_call call = sum_of(x, out, words.data());
    for (int i = 0; i < 3; ++i) CHECK(coll_run(comm, &call) == COLL_OK);
    if (rank == 0) words.front() = 'x';
    CHECK(coll_run(comm, &call) == COLL_MISMATCH);
  });
}

// Rank 0 asks for what cannot be bound, after its plan was chosen; the call before it is as it was.
TEST(a_call_that_is_refused_leaves_the_one_before_as_it_was) {
  on_wired(2, [](int rank, coll_comm* comm) {
    std::vector<double> x(3, 1), out(3);
    const coll_call call = sum_of(x, out);
    CHECK(coll_run(comm, &call) == COLL_OK);
    if (rank == 0) {
      coll_call endless = call;
      endless.count = std::size_t{1} << 58U;
      endless.output = x.data();  // in place; nothing of it is touched
      CHECK(coll_run(comm, &endless) == COLL_UNSUPPORTED && says("make several calls"));
    }
    if (coll_run(comm, &call) != COLL_OK) check::fail(coll_last_error());
    CHECK(out == std::vector<double>(3, 2));
  });
}

TEST(persistent_calls_among_others) {
  for (const int p : {1, 2, 3}) {
    on_wired(p, [p](int rank, coll_comm* comm) {
      std::vector<double> small(3, 1), large(100'000, 2), out_small(3), out_large(100'000);
      coll_persistent *first = nullptr, *second = nullptr;
      const coll_call a = sum_of(small, out_small), b = sum_of(large, out_large);
      CHECK(coll_persistent_new(comm, &a, &first) == COLL_OK);
      CHECK(coll_persistent_new(comm, &b, &second) == COLL_OK);
      for (int turn = 0; turn < 20; ++turn) {
        CHECK(coll_run_persistent(first) == COLL_OK);
        CHECK(coll_start(second) == COLL_OK);
        CHECK(coll_finish(second) == COLL_OK);
        if (turn % 3 == rank) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        CHECK(coll_barrier(comm) == COLL_OK);
        CHECK(out_small == std::vector<double>(3, p));
        CHECK(out_large == std::vector<double>(100'000, 2 * p));
        out_small.assign(3, 0);
        out_large.assign(100'000, 0);
      }
      CHECK(coll_persistent_free(second) == COLL_OK);
      CHECK(coll_run_persistent(first) == COLL_OK);
      CHECK(coll_persistent_free(first) == COLL_OK);
      CHECK(coll_barrier(comm) == COLL_OK);
    });
  }
}

TEST(a_persistent_call_is_finished_before_another_begins) {
  std::atomic<bool> refused{false};
  on_wired(2, [&refused](int rank, coll_comm* comm) {
    std::vector<double> x(3, rank), out(3);
    const coll_call call = sum_of(x, out);
    coll_persistent* it = nullptr;
    CHECK(coll_persistent_new(comm, &call, &it) == COLL_OK);
    CHECK(coll_finish(it) == COLL_INVALID_ARGUMENT && says("was not started"));
    if (rank == 0) {  // alone: it cannot be done yet
      CHECK(coll_start(it) == COLL_OK);
      CHECK(coll_barrier(comm) == COLL_INVALID_ARGUMENT && says("still in progress"));
      CHECK(coll_persistent_free(it) == COLL_INVALID_ARGUMENT && says("finish it first"));
      refused = true;
      CHECK(coll_finish(it) == COLL_OK);
    } else {
      for (int i = 0; i < 10'000 && !refused; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      CHECK(coll_run(comm, &call) == COLL_OK);
    }
    CHECK(out[0] == 1);
    CHECK(coll_persistent_free(it) == COLL_OK);
  });
}

TEST(memory_is_ordinary_memory) {
  on_wired(2, [](int rank, coll_comm* comm) {
    coll_memory* memory = nullptr;
    void* data = nullptr;
    CHECK(coll_memory_new(comm, 3 * sizeof(double), &memory, &data) == COLL_OK);
    CHECK(coll_is_symmetric(comm, data, sizeof(double)) == 0);
    auto* x = static_cast<double*>(data);
    for (int i = 0; i < 3; ++i) x[i] = rank + i;
    CHECK(coll_allreduce(comm, x, x, 3, COLL_FLOAT64, COLL_SUM) == COLL_OK);
    CHECK(x[0] == 1 && x[2] == 5);
    coll_memory_free(memory);
  });
}

// Under the thread sanitizer: abort() comes at any moment of calls in a row.
TEST(an_abort_beside_a_call_ends_it_on_all_ranks) {
  constexpr int kRanks = 3, kTimes = check::kShort ? 4 : 12;
  for (int time = 0; time < kTimes; ++time) {
    const auto comms = wired(kRanks);
    std::atomic<int> calls{0};
    std::thread other([&] {
      while (calls.load() < 1 + time * 7) std::this_thread::yield();
      CHECK(coll_abort(comms[1], "enough") == COLL_OK);
    });
    run_ranks(kRanks, [&](int rank) {
      coll_comm* comm = comms[static_cast<std::size_t>(rank)];
      std::vector<double> x(time % 2 == 0 ? 3 : 20'000, 1), out(x.size());
      coll_status status = COLL_OK;
      while (status == COLL_OK) {
        status = coll_allreduce(comm, x.data(), out.data(), x.size(), COLL_FLOAT64, COLL_SUM);
        calls.fetch_add(1);
      }
      CHECK(status == COLL_ABORTED);
      CHECK(says("rank 1 aborted: enough") && coll_last_error_rank() == 1);
      CHECK(coll_barrier(comm) == COLL_ABORTED && says("enough"));
    });
    other.join();
    for (coll_comm* comm : comms) coll_close(comm);
  }
}

// Rank 1 has knocked, and rank 0 has never been in a call.
TEST(who_knocks_when_a_rank_fails_learns_why) {
  const auto comms = wired(2);
  coll_status status = COLL_OK;
  std::string told;
  std::thread other([&] {
    status = coll_barrier(comms[1]);
    told = coll_last_error();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK(coll_abort(comms[0], "no data") == COLL_OK);
  other.join();
  if (status != COLL_ABORTED || told.find("rank 0 aborted: no data") == std::string::npos) {
    check::fail(told);
  }
  for (coll_comm* comm : comms) coll_close(comm);
}

// Long before the time-out of 300 s, which would say the same.
TEST(a_rank_that_has_no_descriptor_for_its_peer_says_so_soon) {
  const auto comms = wired(2);
  const auto begin = std::chrono::steady_clock::now();
  coll::faults::arm({coll::SystemCall::accept4, 1, EMFILE, true});
  run_ranks(2, [&](int rank) {
    const coll_status status = coll_barrier(comms[static_cast<std::size_t>(rank)]);
    if (rank == 1) {
      if (status != COLL_PEER_LOST && status != COLL_SYSTEM) check::fail(coll_last_error());
    } else {
      CHECK(status == COLL_SYSTEM && says("rank 0 waits for rank 1"));
      CHECK(says("EMFILE") && says("raise `ulimit -n`"));
    }
  });
  coll::faults::clear();
  CHECK(std::chrono::steady_clock::now() - begin < check::promised(std::chrono::seconds(6)));
  for (coll_comm* comm : comms) coll_close(comm);
}

TEST(a_stranger_who_says_nothing_does_not_keep_a_rank_that_fails) {
  WiredJob job(2);
  coll_comm* comm = job.join(0);
  const coll::Connection stranger =
      coll::tcp_connect(coll::Endpoint::parse(job.data_door(0)), coll::Deadline(10));
  const auto begin = std::chrono::steady_clock::now();
  CHECK(coll_abort(comm, "no data") == COLL_OK);
  const auto took = std::chrono::steady_clock::now() - begin;
  if (took < std::chrono::milliseconds(400) || took > check::promised(std::chrono::seconds(3))) {
    check::fail("it took " + std::to_string(std::chrono::duration<double>(took).count()) + " s");
  }
  coll_close(comm);
}

// To obey takes half a second then: a call that comes meanwhile is no second thread in a call.
TEST(a_call_waits_for_the_thread_that_aborts) {
  WiredJob job(2);
  coll_comm* comm = job.join(0);
  const coll::Connection stranger =
      coll::tcp_connect(coll::Endpoint::parse(job.data_door(0)), coll::Deadline(10));
  std::thread aborting([&] { CHECK(coll_abort(comm, "no data") == COLL_OK); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK(coll_barrier(comm) == COLL_ABORTED);
  CHECK(says("rank 0 aborted: no data"));
  aborting.join();
  coll_close(comm);
}

TEST(an_abort_between_calls_ends_the_next) {
  const auto comms = wired(2);
  run_ranks(2, [&](int rank) {
    const coll_status status = coll_barrier(comms[static_cast<std::size_t>(rank)]);
    if (status != COLL_OK) check::fail(coll_last_error());
  });
  CHECK(coll_abort(comms[0], "no more") == COLL_OK);
  run_ranks(2, [&](int rank) {
    CHECK(coll_barrier(comms[static_cast<std::size_t>(rank)]) == COLL_ABORTED);
    CHECK(says("rank 0 aborted: no more"));
  });
  for (coll_comm* comm : comms) coll_close(comm);
}

}  // namespace

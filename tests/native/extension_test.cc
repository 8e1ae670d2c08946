// SPDX-License-Identifier: Apache-2.0
// What users bring: operations as functions, and schedules of their own.
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "check.h"
#include "collectives.h"
#include "instrumented.h"

namespace {

std::vector<coll_comm*> local(int p) {
  coll_options options{};
  options.size = sizeof options;
  options.ranks = p;
  options.timeout = 20;
  std::vector<coll_comm*> comms(static_cast<std::size_t>(p));
  CHECK(coll_local(&options, comms.data()) == COLL_OK);
  return comms;
}

template <class F>
void on_ranks(int p, F f) {
  const auto comms = local(p);
  run_ranks(p, [&](int rank) { f(comms[static_cast<std::size_t>(rank)], rank); });
  for (coll_comm* comm : comms) coll_close(comm);
}

bool says(const std::string& part) {
  return std::string(coll_last_error()).find(part) != std::string::npos;
}

// The last that is not 0: associative, and does not commute.
std::int32_t last_set(const void* left, void* right, std::size_t n, std::int32_t dtype,
                      void* context) {
  ++*static_cast<std::atomic<int>*>(context);
  if (dtype != COLL_INT32) return 1;
  const auto* a = static_cast<const std::int32_t*>(left);
  auto* b = static_cast<std::int32_t*>(right);
  for (std::size_t i = 0; i < n; ++i) b[i] = b[i] != 0 ? b[i] : a[i];
  return 0;
}

// Every third element of a rank is 0.
std::int32_t value(int rank, std::size_t i) {
  return (i + static_cast<std::size_t>(rank)) % 3 == 0 ? 0 : 100 * (rank + 1) + int(i % 7);
}

std::int32_t expected(int last, std::size_t i) {
  std::int32_t result = 0;
  for (int r = 0; r <= last; ++r) result = value(r, i) != 0 ? value(r, i) : result;
  return result;
}

coll_status run(coll_comm* comm, int kind, int op, std::vector<std::int32_t>& in,
                std::vector<std::int32_t>& out, int algorithm = -1, int root = 0) {
  return coll_collective(comm, kind, in.data(), out.data(), in.size(), COLL_INT32, op, root,
                         algorithm, COLL_MODE_AUTO, 0);
}

void check_kind(coll_comm* comm, int kind, int op, std::size_t n, int algorithm = -1) {
  const int rank = coll_rank(comm), p = coll_ranks(comm), root = p / 2;
  const std::size_t part = kind == COLL_REDUCE_SCATTER ? n / static_cast<std::size_t>(p) : n;
  const std::size_t start = kind == COLL_REDUCE_SCATTER ? part * static_cast<std::size_t>(rank) : 0;
  std::vector<std::int32_t> in(n), out(part, -1);
  for (std::size_t i = 0; i < n; ++i) in[i] = value(rank, i);
  CHECK(run(comm, kind, op, in, out, algorithm, root) == COLL_OK);
  if (kind == COLL_REDUCE && rank != root) return;
  if (kind == COLL_EXSCAN && rank == 0) return;
  const int last = kind == COLL_SCAN ? rank : kind == COLL_EXSCAN ? rank - 1 : p - 1;
  for (std::size_t i = 0; i < part; ++i) CHECK(out[i] == expected(last, start + i));
}

TEST(an_operation_that_does_not_commute_keeps_the_order_of_ranks) {
  std::atomic<int> calls = 0;
  int op = -1;
  CHECK(coll_op_create(last_set, &calls, 0, "last_set", &op) == COLL_OK);
  for (const int p : {1, 2, 3, 5, 8}) {
    on_ranks(p, [&](coll_comm* comm, int) {
      for (const int kind :
           {COLL_ALLREDUCE, COLL_REDUCE_SCATTER, COLL_REDUCE, COLL_SCAN, COLL_EXSCAN}) {
        for (const std::size_t n : {0, 1, 7, 1500, check::kInstrumented ? 20'000 : 200'000}) {
          check_kind(comm, kind, op, n * static_cast<std::size_t>(p));
        }
      }
    });
  }
  CHECK(calls > 0);
  CHECK(coll_op_free(op) == COLL_OK);
}

TEST(algorithms_that_do_not_keep_it_are_refused_and_the_rest_are_right) {
  std::atomic<int> calls = 0;
  int op = -1, commuting = -1;
  CHECK(coll_op_create(last_set, &calls, 0, "last_set", &op) == COLL_OK);
  CHECK(coll_op_create(last_set, &calls, 1, "last_set", &commuting) == COLL_OK);
  on_ranks(5, [&](coll_comm* comm, int) {
    for (int a = 0; a < coll_algorithm_count(); ++a) {
      coll_algorithm info;
      CHECK(coll_algorithm_get(a, &info) == COLL_OK);
      if (info.kind != COLL_ALLREDUCE || coll_algorithm_fits(a, 5) == 0) continue;
      coll_proof proof;
      CHECK(coll_prove(a, 5, 0, 1, &proof) == COLL_OK && proof.proved);
      if (proof.rank_order) continue;  // a claim for 5 ranks alone is none
      std::vector<std::int32_t> in(10), out(10);
      CHECK(run(comm, COLL_ALLREDUCE, op, in, out, a) == COLL_UNSUPPORTED);
      CHECK(says("does not keep the order of ranks"));
      CHECK(run(comm, COLL_ALLREDUCE, commuting, in, out, a) == COLL_OK);
    }
    check_kind(comm, COLL_ALLREDUCE, op, 50,
               coll_algorithm_find(COLL_ALLREDUCE, "direct_two_shot"));
    check_kind(comm, COLL_ALLREDUCE, op, 50,
               coll_algorithm_find(COLL_ALLREDUCE, "recursive_doubling"));
  });
  CHECK(coll_op_free(op) == COLL_OK && coll_op_free(commuting) == COLL_OK);
}

TEST(an_operation_that_fails_ends_the_call_on_all_ranks) {
  std::atomic<int> calls = 0;
  int op = -1;
  CHECK(coll_op_create(last_set, &calls, 1, "last_set", &op) == COLL_OK);
  for (const std::size_t n : {1, 100'000}) {
    on_ranks(3, [&](coll_comm* comm, int) {
      std::vector<float> x(n);
      CHECK(coll_allreduce(comm, x.data(), x.data(), n, COLL_FLOAT32, op) == COLL_ABORTED);
      CHECK(says("its operation has failed"));
    });
  }
  CHECK(coll_op_free(op) == COLL_OK);
}

TEST(operations_that_are_none_are_refused) {
  int op = -1;
  CHECK(coll_op_create(nullptr, nullptr, 1, "last_set", &op) == COLL_INVALID_ARGUMENT);
  CHECK(coll_op_create(last_set, nullptr, 1, "last_set", nullptr) == COLL_INVALID_ARGUMENT);
  CHECK(coll_op_free(3) == COLL_INVALID_ARGUMENT);
  CHECK(coll_op_free(200) == COLL_INVALID_ARGUMENT);
  on_ranks(1, [&](coll_comm* comm, int) {
    std::vector<std::int32_t> x(3);
    CHECK(run(comm, COLL_ALLREDUCE, 200, x, x) == COLL_INVALID_ARGUMENT);
  });
  std::vector<int> made(128);
  for (int& one : made) CHECK(coll_op_create(last_set, nullptr, 1, "last_set", &one) == COLL_OK);
  CHECK(coll_op_create(last_set, nullptr, 1, "last_set", &op) == COLL_UNSUPPORTED);
  for (const int one : made) CHECK(coll_op_free(one) == COLL_OK);
}

// ---- schedules
// -----------------------------------------------------------------------------------

// Everybody sends everything to rank 0, which folds in rank order and tells; `order` may spoil it.
std::vector<std::int32_t> star(int p, bool drop_last = false, int chunks = 2) {
  coll_builder* b = nullptr;
  CHECK(coll_builder_new(COLL_ALLREDUCE, p, 0, chunks, &b) == COLL_OK);
  const std::int32_t all[2] = {0, chunks}, root = 0;
  for (int rank = 0; rank < p; ++rank) {
    CHECK(coll_builder_rank(b, rank) == COLL_OK);
    if (rank > 0) {
      CHECK(coll_builder_send(b, 0, &root, 1, all, 1) == COLL_OK);
      CHECK(coll_builder_recv(b, 1, 0, all, 1) == COLL_OK);
      continue;
    }
    std::vector<std::int32_t> order = {-1}, others;
    for (int r = 1; r < p; ++r) others.push_back(r);
    order.insert(order.end(), others.begin(), others.end() - (drop_last ? 1 : 0));
    CHECK(coll_builder_recv_reduce(b, 0, order.data(), order.size(), 0, all, 1) == COLL_OK);
    CHECK(coll_builder_send(b, 1, others.data(), others.size(), all, 1) == COLL_OK);
  }
  std::int32_t* words = nullptr;
  std::size_t length = 0;
  CHECK(coll_builder_finish(b, &words, &length) == COLL_OK);
  const std::vector<std::int32_t> encoded(words, words + length);
  coll_free(words);
  coll_builder_free(b);
  return encoded;
}

TEST(a_given_schedule_runs_like_a_built_in_one) {
  std::atomic<int> calls = 0;
  int op = -1;
  CHECK(coll_op_create(last_set, &calls, 0, "last_set", &op) == COLL_OK);
  for (const int p : {2, 3, 6}) {
    const auto encoded = star(p);
    on_ranks(p, [&](coll_comm* comm, int) {
      int algorithm = -1;
      CHECK(coll_add_schedule(comm, encoded.data(), encoded.size(), "given", &algorithm) ==
            COLL_OK);
      for (const std::size_t n : {0, 1, 5, 3000, 100'000}) {
        check_kind(comm, COLL_ALLREDUCE, op, n, algorithm);  // it keeps rank order
        check_kind(comm, COLL_ALLREDUCE, op, n);
      }
      std::vector<std::int32_t> x(4);
      CHECK(run(comm, COLL_REDUCE, COLL_SUM, x, x, algorithm) == COLL_INVALID_ARGUMENT);
      CHECK(says("one for allreduce, not for reduce"));
      CHECK(run(comm, COLL_ALLREDUCE, COLL_SUM, x, x, algorithm + 1) == COLL_INVALID_ARGUMENT);
      CHECK(coll_barrier(comm) == COLL_OK);
    });
  }
  CHECK(coll_op_free(op) == COLL_OK);
}

TEST(a_wrong_schedule_is_refused_with_what_is_wrong) {
  const auto unmatched = star(3, true), other_p = star(4);
  on_ranks(3, [&](coll_comm* comm, int) {
    int algorithm = -1;
    CHECK(coll_add_schedule(comm, unmatched.data(), unmatched.size(), "given", &algorithm) ==
          COLL_INVALID_ARGUMENT);
    CHECK(says("rank 2") && says("round 0"));
    CHECK(coll_add_schedule(comm, other_p.data(), other_p.size(), "given", &algorithm) ==
          COLL_INVALID_ARGUMENT);
    CHECK(says("for 4 ranks"));
    CHECK(coll_add_schedule(comm, other_p.data(), 3, "given", &algorithm) == COLL_INVALID_ARGUMENT);
    CHECK(coll_barrier(comm) == COLL_OK);
  });
}

TEST(ranks_with_different_schedules_are_told) {
  const auto one = star(2, false, 1), other = star(2, false, 2);
  on_ranks(2, [&](coll_comm* comm, int rank) {
    int algorithm = -1;
    const auto& mine = rank == 0 ? one : other;
    CHECK(coll_add_schedule(comm, mine.data(), mine.size(), "given", &algorithm) == COLL_OK);
    std::vector<std::int32_t> x(4);
    CHECK(run(comm, COLL_ALLREDUCE, COLL_SUM, x, x, algorithm) == COLL_MISMATCH);
    CHECK(says("own algorithm given") && says(", whose schedules differ"));
  });
  on_ranks(2, [&](coll_comm* comm, int rank) {
    int algorithm = -1;
    const char* name = rank == 0 ? nullptr : "named";
    CHECK(coll_add_schedule(comm, one.data(), one.size(), name, &algorithm) == COLL_OK);
    std::vector<std::int32_t> x(4);
    CHECK(run(comm, COLL_ALLREDUCE, COLL_SUM, x, x, algorithm) == COLL_MISMATCH);
    CHECK(says("a given schedule, ") && says("own algorithm named, "));
  });
}

coll_status run_agreed(coll_comm* comm, const char* agreed, std::size_t size = sizeof(coll_call)) {
  std::int32_t x = 1;
  coll_call call{};
  call.size = size;
  call.kind = COLL_ALLREDUCE;
  call.dtype = COLL_INT32;
  call.input = call.output = &x;
  call.count = 1;
  call.algorithm = call.mode = -1;
  call.agreed = agreed;
  const coll_status status = coll_run(comm, &call);
  CHECK(status != COLL_OK || x == coll_ranks(comm));
  return status;
}

TEST(words_that_ranks_must_agree_on_are_compared) {
  const std::string much(300, 'x');
  on_ranks(2, [&](coll_comm* comm, int rank) {
    CHECK(run_agreed(comm, "the same") == COLL_OK);
    CHECK(run_agreed(comm, "the same as well") == COLL_OK);
    CHECK(run_agreed(comm, rank == 0 ? "" : nullptr) == COLL_OK);  // nothing is said
    CHECK(run_agreed(comm, much.c_str()) == COLL_OK);
    // A program that was compiled before there was the field.
    CHECK(run_agreed(comm, much.c_str() + rank, offsetof(coll_call, agreed)) == COLL_OK);
    CHECK(run_agreed(comm, rank == 0 ? "lengths 3, 5" : "lengths 5, 3") == COLL_MISMATCH);
    CHECK(says("for lengths 3, 5, rank 1") && says("for lengths 5, 3"));
  });
  on_ranks(2, [&](coll_comm* comm, int rank) {
    CHECK(run_agreed(comm, rank == 0 ? "there are some" : nullptr) == COLL_MISMATCH);
    CHECK(says("for there are some, rank 1"));
  });
  on_ranks(2, [&](coll_comm* comm, int rank) {
    CHECK(run_agreed(comm, much.c_str() + rank) == COLL_MISMATCH);
    CHECK(says("xxx..., rank 1") && says("xxx..., which differ further on"));
  });
  // Words of one call in the place of those of the one before: short ones, and long ones.
  for (const std::size_t length : {4U, 200U}) {
    on_ranks(2, [&](coll_comm* comm, int rank) {
      std::string words(length, 'a');
      for (int i = 0; i < 3; ++i) CHECK(run_agreed(comm, words.c_str()) == COLL_OK);
      words.front() = 'b';
      CHECK(run_agreed(comm, words.c_str()) == COLL_OK);
      if (rank == 1) words.front() = 'a';
      CHECK(run_agreed(comm, words.c_str()) == COLL_MISMATCH);
    });
  }
}

TEST(a_builder_that_is_misused_says_so) {
  coll_builder* b = nullptr;
  CHECK(coll_builder_new(99, 2, 0, 1, &b) == COLL_INVALID_ARGUMENT);
  CHECK(coll_builder_new(COLL_ALLGATHER, 4, 0, 3, &b) == COLL_INVALID_ARGUMENT);
  CHECK(coll_builder_new(COLL_ALLREDUCE, 2, 2, 1, &b) == COLL_INVALID_ARGUMENT);
  CHECK(coll_builder_new(COLL_ALLREDUCE, 2, 0, 4, &b) == COLL_OK);
  const std::int32_t all[2] = {0, 4}, outside[2] = {2, 3}, peer = 1;
  CHECK(coll_builder_send(b, 0, &peer, 1, all, 1) == COLL_INVALID_ARGUMENT && says("builder_rank"));
  CHECK(coll_builder_rank(b, 2) == COLL_INVALID_ARGUMENT);
  CHECK(coll_builder_rank(b, 0) == COLL_OK);
  CHECK(coll_builder_rank(b, 0) == COLL_INVALID_ARGUMENT && says("already"));
  CHECK(coll_builder_send(b, 0, &peer, 1, outside, 1) == COLL_INVALID_ARGUMENT && says("2 to 4"));
  CHECK(coll_builder_copy(b, 0, 0, 3, all, 1) == COLL_INVALID_ARGUMENT);
  CHECK(coll_builder_recv(b, 5, 1, all, 1) == COLL_OK);
  CHECK(coll_builder_send(b, 4, &peer, 1, all, 1) == COLL_INVALID_ARGUMENT && says("round 4"));
  coll_builder_free(b);
  coll_builder_free(nullptr);
}

}  // namespace

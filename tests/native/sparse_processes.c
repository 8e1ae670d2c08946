/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of sparse vectors from C alone, among three processes: by every algorithm, in both forms,
 * averages and what is refused; and what others are told of a call that they do not make.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectives.h"

enum { RANKS = 3, LENGTH = 5000 };

static int failures = 0;

static void expect(int holds, const char* what, int rank) {
  if (holds) return;
  fprintf(stderr, "rank %d: %s (last error: %s)\n", rank, what, coll_last_error());
  ++failures;
}

static coll_comm* join(int rank, const char* job) {
  coll_options options;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.rank = rank;
  options.ranks = RANKS;
  options.job = job;
  options.timeout = 20;
  coll_comm* comm = NULL;
  expect(coll_init(&options, &comm) == COLL_OK, "coll_init", rank);
  return comm;
}

/* Two elements: one that all ranks have, in two parts, and one of this rank's own. */
static const int64_t all_indices[RANKS][3] = {{4000, 7, 4000}, {4000, 8, 4000}, {4000, 9, 4000}};
static const float all_values[RANKS][3] = {{1, 10, 2}, {1, 20, 2}, {1, 30, 2}};

static coll_sparse_call call_of(int rank) {
  coll_sparse_call call;
  memset(&call, 0, sizeof call);
  call.size = sizeof call;
  call.kind = COLL_ALLREDUCE;
  call.dtype = COLL_FLOAT32;
  call.op = COLL_SUM;
  call.algorithm = COLL_SPARSE_CHOOSE;
  call.output = COLL_SPARSE_PAIRS;
  call.index_dtype = COLL_INT64;
  call.indices = all_indices[rank];
  call.values = all_values[rank];
  call.entries = 3;
  call.length = LENGTH;
  return call;
}

static void check_sum(coll_comm* comm, int rank, int algorithm, int output, float divisor) {
  coll_sparse_call call = call_of(rank);
  coll_sparse* result = NULL;
  coll_sparse_view view;
  call.algorithm = algorithm;
  call.output = output;
  call.op = divisor == 1 ? COLL_SUM : COLL_AVG;
  expect(coll_sparse_run(comm, &call, &result) == COLL_OK, "coll_sparse_run", rank);
  expect(coll_sparse_look(result, &view) == COLL_OK, "coll_sparse_look", rank);
  expect(view.length == LENGTH && view.dense == (output == COLL_SPARSE_DENSE), "its form", rank);
  const float* values = view.values;
  if (view.dense) {
    expect(view.entries == LENGTH && values[8] == 20 / divisor && values[4000] == 9 / divisor &&
               values[0] == 0 && values[4999] == 0,
           "all values", rank);
  } else {
    const uint32_t* indices = view.indices;
    expect(view.index_bytes == 4 && view.entries == 4, "its entries", rank);
    expect(indices[0] == 7 && indices[1] == 8 && indices[2] == 9 && indices[3] == 4000, "indices",
           rank);
    expect(values[0] == 10 / divisor && values[2] == 30 / divisor && values[3] == 9 / divisor,
           "values", rank);
  }
  expect((view.messages > 0) == (view.algorithm < COLL_SPARSE_AS_DENSE), "messages", rank);
  coll_sparse_free(result);
}

static void check_every_algorithm(coll_comm* comm, int rank) {
  int seen = 0;
  for (int32_t a = 0; a < coll_sparse_algorithm_count(); ++a) {
    coll_sparse_algorithm info;
    expect(coll_sparse_algorithm_get(a, &info) == COLL_OK, "coll_sparse_algorithm_get", rank);
    if (info.kind != COLL_ALLREDUCE) continue;
    check_sum(comm, rank, a, COLL_SPARSE_PAIRS, 1);
    check_sum(comm, rank, a, COLL_SPARSE_DENSE, 1);
    ++seen;
  }
  expect(seen >= 5, "there are several algorithms", rank);
  check_sum(comm, rank, COLL_SPARSE_AS_DENSE, COLL_SPARSE_PAIRS, 1);
  check_sum(comm, rank, COLL_SPARSE_CHOOSE, COLL_SPARSE_PAIRS, RANKS);
}

static void check_moves(coll_comm* comm, int rank) {
  coll_sparse_call call = call_of(rank);
  coll_sparse* result = NULL;
  coll_sparse_view view;
  call.kind = COLL_ALLGATHER;
  expect(coll_sparse_run(comm, &call, &result) == COLL_OK, "allgather", rank);
  expect(coll_sparse_look(result, &view) == COLL_OK && view.length == RANKS * LENGTH &&
             view.entries == 2 * RANKS,
         "of all", rank);
  const uint32_t* indices = view.indices;
  expect(indices[2] == LENGTH + 8 && indices[5] == 2 * LENGTH + 4000, "one after another", rank);
  coll_sparse_free(result);
  call.kind = COLL_BROADCAST;
  call.root = 1;
  if (rank != 1) call.indices = NULL; /* not looked at */
  expect(coll_sparse_run(comm, &call, &result) == COLL_OK, "broadcast", rank);
  expect(coll_sparse_look(result, &view) == COLL_OK && view.entries == 2 &&
             ((const float*)view.values)[0] == 20,
         "of rank 1", rank);
  coll_sparse_free(result);
}

/* Refused before anything is sent: the communicator works on. */
static void check_refusals(coll_comm* comm, int rank) {
  coll_sparse* result = NULL;
  coll_sparse_call call = call_of(rank);
  call.op = COLL_MAXLOC;
  expect(coll_sparse_run(comm, &call, &result) == COLL_INVALID_ARGUMENT &&
             strstr(coll_last_error(), "maxloc of float32 is not there") != NULL,
         "an operation of pairs", rank);
  call = call_of(rank);
  call.length = 4000;
  expect(coll_sparse_run(comm, &call, &result) == COLL_INVALID_ARGUMENT &&
             strstr(coll_last_error(), "index 4000 (at 0) is none of a vector of 4000") != NULL,
         "an index out of range", rank);
  call = call_of(rank);
  call.indices = NULL;
  expect(coll_sparse_run(comm, &call, &result) == COLL_INVALID_ARGUMENT, "a null pointer", rank);
  call = call_of(rank);
  call.size = 8;
  expect(coll_sparse_run(comm, &call, &result) == COLL_INVALID_ARGUMENT, "another size", rank);
  expect(result == NULL, "there is no result", rank);
  expect(coll_barrier(comm) == COLL_OK, "the communicator lives on", rank);
}

static void check_mismatch(int rank, const char* job) {
  coll_comm* comm = join(rank, job);
  coll_sparse_call call = call_of(rank);
  coll_sparse* result = NULL;
  float x[4] = {0};
  const coll_status status = rank == 2 ? coll_allreduce(comm, x, x, 4, COLL_FLOAT32, COLL_SUM)
                                       : coll_sparse_run(comm, &call, &result);
  expect(status == COLL_MISMATCH, "another call is told", rank);
  expect(strstr(coll_last_error(), "sparse allreduce of 5000 float32") != NULL &&
             strstr(coll_last_error(), "calls allreduce of 4 float32") != NULL,
         "with both calls", rank);
  expect(coll_sparse_run(comm, &call, &result) == COLL_MISMATCH && result == NULL, "and stays",
         rank);
  coll_close(comm);
}

static void run_rank(int rank, const char* job) {
  char name[64];
  coll_comm* comm = join(rank, job);
  check_every_algorithm(comm, rank);
  check_moves(comm, rank);
  check_refusals(comm, rank);
  expect(coll_close(comm) == COLL_OK, "close", rank);
  snprintf(name, sizeof name, "%s-mismatch", job);
  check_mismatch(rank, name);
}

int main(void) {
  char job[32];
  pid_t children[RANKS];
  alarm(60); /* a watchdog: nothing may hang */
  snprintf(job, sizeof job, "sparse-%d", (int)getpid());
  for (int rank = 1; rank < RANKS; ++rank) {
    children[rank] = fork();
    if (children[rank] < 0) return 2;
    if (children[rank] == 0) {
      run_rank(rank, job);
      printf("%d passed, %d failed\n", failures == 0, failures);
      return failures != 0;
    }
  }
  run_rank(0, job);
  for (int rank = 1; rank < RANKS; ++rank) {
    int status = 0;
    if (waitpid(children[rank], &status, 0) != children[rank] || status != 0) ++failures;
  }
  printf("%d passed, %d failed\n", failures == 0, failures);
  return failures != 0;
}

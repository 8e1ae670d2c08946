/* SPDX-License-Identifier: Apache-2.0
 *
 * All that a call needs at run time, from C alone: two processes find each other, every collective
 * gives its result, a mismatch and a dead peer are told, and nothing hangs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectives.h"

enum { COUNT = 100000 };

static int failures = 0;

static void expect(int holds, const char* what, int rank) {
  if (holds) return;
  fprintf(stderr, "rank %d: %s (last error: %s)\n", rank, what, coll_last_error());
  ++failures;
}

static coll_comm* join(int rank, const char* job, double timeout) {
  coll_options options;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.rank = rank;
  options.ranks = 2;
  options.job = job;
  options.timeout = timeout;
  coll_comm* comm = NULL;
  expect(coll_init(&options, &comm) == COLL_OK, "coll_init", rank);
  return comm;
}

static void check_allreduce(coll_comm* comm, int rank, size_t count) {
  float* x = malloc((count + 1) * sizeof *x);
  for (int a = 0; a < coll_algorithm_count(); ++a) {
    coll_algorithm info;
    expect(coll_algorithm_get(a, &info) == COLL_OK, "coll_algorithm_get", rank);
    if (info.kind != COLL_ALLREDUCE) continue;
    for (size_t i = 0; i < count; ++i) x[i] = (float)(i % 1000) + (float)rank;
    expect(coll_collective(comm, COLL_ALLREDUCE, x, x, count, COLL_FLOAT32, COLL_SUM, 0, a,
                           COLL_MODE_STAGED, 0) == COLL_OK,
           info.name, rank);
    size_t wrong = 0;
    for (size_t i = 0; i < count; ++i) wrong += x[i] != 2.0f * (float)(i % 1000) + 1.0f;
    expect(wrong == 0, info.name, rank);
  }
  free(x);
}

static void check_others(coll_comm* comm, int rank) {
  int64_t all[5] = {0}, mine[3] = {10, 11, 12};
  const size_t counts[2] = {2, 3};
  expect(coll_allgatherv(comm, mine, all, counts, COLL_INT64) == COLL_OK, "allgatherv", rank);
  expect(all[0] == 10 && all[1] == 11 && all[2] == 10 && all[4] == 12, "allgatherv result", rank);
  double v[4] = {1, 2, 3, 4}, half[2];
  expect(coll_reduce_scatter(comm, v, half, 4, COLL_FLOAT64, COLL_AVG) == COLL_OK, "rs", rank);
  expect(half[0] == (rank == 0 ? 1 : 3) && half[1] == (rank == 0 ? 2 : 4), "rs result", rank);
  v[0] = rank;
  expect(coll_broadcast(comm, v, v, 4, COLL_FLOAT64, 1) == COLL_OK && v[0] == 1, "bcast", rank);
  expect(coll_reduce(comm, v, half, 2, COLL_FLOAT64, COLL_PROD, 0) == COLL_OK, "reduce", rank);
  expect(coll_barrier(comm) == COLL_OK, "barrier", rank);
}

/* Counts are of 2 ranks, of roots 0 and 1, and of parts of 1 and 2 numbers. */
static void check_rooted(coll_comm* comm, int rank) {
  const size_t counts[2] = {1, 2};
  int32_t mine[2] = {10 * rank, 10 * rank + 1}, all[4] = {-1, -1, -1, -1};
  int32_t* only_root_1 = rank == 1 ? all : NULL;
  expect(coll_gather(comm, mine, only_root_1, 2, COLL_INT32, 1) == COLL_OK, "gather", rank);
  expect(rank == 0 || (all[0] == 0 && all[1] == 1 && all[2] == 10 && all[3] == 11), "gather", rank);
  int32_t* only_root_0 = rank == 0 ? all : NULL;
  expect(coll_gatherv(comm, mine, only_root_0, counts, COLL_INT32, 0) == COLL_OK, "gatherv", rank);
  expect(rank == 1 || (all[0] == 0 && all[1] == 10 && all[2] == 11), "gatherv result", rank);
  const int32_t whole[4] = {5, 6, 7, 8};
  const int32_t* from_0 = rank == 0 ? whole : NULL;
  expect(coll_scatter(comm, from_0, mine, 2, COLL_INT32, 0) == COLL_OK, "scatter", rank);
  expect(mine[0] == 5 + 2 * rank && mine[1] == 6 + 2 * rank, "scatter result", rank);
  const int32_t* from_1 = rank == 1 ? whole : NULL;
  expect(coll_scatterv(comm, from_1, mine, counts, COLL_INT32, 1) == COLL_OK, "scatterv", rank);
  expect(mine[0] == 5 + rank && mine[1] == (rank == 0 ? 6 : 7), "scatterv result", rank);
}

static void check_exchanges_and_scans(coll_comm* comm, int rank) {
  const int32_t mine[4] = {10 * rank, 10 * rank + 1, 10 * rank + 2, 10 * rank + 3};
  int32_t got[4] = {-1, -1, -1, -1};
  expect(coll_alltoall(comm, mine, got, 4, COLL_INT32) == COLL_OK, "alltoall", rank);
  expect(got[0] == 2 * rank && got[1] == 2 * rank + 1 && got[2] == 2 * rank + 10, "its result",
         rank);
  const size_t counts[4] = {1, 2, 0, 3}; /* rank 0 sends 1 to itself and 2 to rank 1, which has 3 */
  const int32_t block[5] = {1, 2, 10, 11, 12};
  int32_t five[5] = {0};
  expect(coll_alltoallv(comm, mine, five, counts, COLL_INT32) == COLL_OK, "alltoallv", rank);
  expect(rank == 0 || memcmp(five, block, sizeof five) == 0, "rank 1 gets 2 and its own 3", rank);
  expect(rank == 1 || (five[0] == 0 && five[1] == 0), "rank 0 gets but its own 1", rank);
  const size_t parts[2] = {3, 1};
  expect(coll_reduce_scatterv(comm, mine, got, parts, COLL_INT32, COLL_SUM) == COLL_OK, "rsv",
         rank);
  expect(got[0] == (rank == 0 ? 10 : 16), "reduce_scatterv result", rank);
  expect(coll_scan(comm, mine, got, 4, COLL_INT32, COLL_SUM) == COLL_OK, "scan", rank);
  expect(got[0] == 10 * rank && got[3] == (rank == 0 ? 3 : 16), "scan result", rank);
  int32_t* not_first = rank == 0 ? NULL : got;
  expect(coll_exscan(comm, mine, not_first, 4, COLL_INT32, COLL_SUM) == COLL_OK, "exscan", rank);
  expect(rank == 0 || (got[0] == 0 && got[3] == 3), "exscan result", rank);
  expect(coll_gatherv(comm, mine, got, NULL, COLL_INT32, 0) == COLL_INVALID_ARGUMENT &&
             strstr(coll_last_error(), "gatherv: the counts are a null pointer") != NULL,
         "counts are needed", rank);
}

static void check_mismatch(int rank, const char* job) {
  coll_comm* comm = join(rank, job, 10);
  float x[8] = {0};
  const coll_status status = coll_allreduce(comm, x, x, rank == 0 ? 8 : 4, COLL_FLOAT32, COLL_SUM);
  expect(status == COLL_MISMATCH, "a mismatch is told", rank);
  expect(strstr(coll_last_error(), "8 float32") != NULL, "it names both calls", rank);
  expect(coll_barrier(comm) == COLL_MISMATCH, "and stays", rank);
  coll_close(comm);
}

static void check_dead_peer(int rank, const char* job) {
  coll_comm* comm = join(rank, job, 20);
  if (rank == 1) _exit(failures != 0);
  expect(coll_barrier(comm) == COLL_PEER_LOST, "a dead peer is told", rank);
  expect(coll_last_error_rank() == 1, "by its rank", rank);
  coll_close(comm);
}

static void check_groups(coll_comm* comm, int rank) {
  coll_comm *alone = NULL, *reverse = NULL;
  const int32_t list[2] = {1, 0};
  int64_t x = rank;
  expect(coll_split(comm, rank, 0, &alone) == COLL_OK && coll_ranks(alone) == 1, "split", rank);
  expect(coll_close(alone) == COLL_OK, "close of a group", rank);
  expect(coll_subgroup(comm, list, 2, &reverse) == COLL_OK, "subgroup", rank);
  expect(coll_rank(reverse) == 1 - rank, "its order", rank);
  expect(coll_broadcast(reverse, &x, &x, 1, COLL_INT64, 0) == COLL_OK && x == 1, "in it", rank);
  expect(coll_split(comm, COLL_NO_COLOR, 0, &alone) == COLL_OK && alone == NULL, "none", rank);
  expect(coll_close(reverse) == COLL_OK, "close of the other", rank);
}

/* What a fork inherits is no communicator, and leaves the parent's alone. */
static void check_fork(coll_comm* comm, int rank) {
  const pid_t child = fork();
  if (child == 0) {
    float x = 1;
    const coll_status called = coll_allreduce(comm, &x, &x, 1, COLL_FLOAT32, COLL_SUM);
    const coll_status aborted = coll_abort(comm, "from a child");
    _exit(called != COLL_CLOSED || aborted != COLL_CLOSED || coll_close(comm) != COLL_OK);
  }
  int status = -1;
  expect(child > 0 && waitpid(child, &status, 0) == child && status == 0, "fork", rank);
  expect(coll_barrier(comm) == COLL_OK, "and the parent works on", rank);
}

static void run_rank(int rank, const char* job) {
  char name[64];
  coll_comm* comm = join(rank, job, 20);
  expect(coll_rank(comm) == rank && coll_ranks(comm) == 2, "rank and ranks", rank);
  check_allreduce(comm, rank, 1);
  check_allreduce(comm, rank, COUNT);
  check_others(comm, rank);
  check_rooted(comm, rank);
  check_exchanges_and_scans(comm, rank);
  expect(coll_allreduce(comm, NULL, NULL, 3, COLL_FLOAT32, COLL_SUM) == COLL_INVALID_ARGUMENT,
         "a null pointer is refused", rank);
  expect(coll_barrier(comm) == COLL_OK, "and the communicator lives on", rank);
  check_groups(comm, rank);
  check_fork(comm, rank);
  expect(coll_close(comm) == COLL_OK, "close", rank);
  snprintf(name, sizeof name, "%s-mismatch", job);
  check_mismatch(rank, name);
  snprintf(name, sizeof name, "%s-death", job);
  check_dead_peer(rank, name);
}

int main(void) {
  char job[32];
  alarm(60); /* a watchdog: nothing below may hang */
  snprintf(job, sizeof job, "two-%d", (int)getpid());
  const pid_t child = fork();
  if (child < 0) return 2;
  run_rank(child == 0 ? 1 : 0, job);
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) ++failures;
  printf("%d passed, %d failed\n", failures == 0, failures);
  return failures != 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The launcher's key-value store: the part of the public C interface that collectives.h includes.
 *
 * mpiexec of MPICH and Intel MPI, and srun, keep a store in which ranks leave values for each other
 * before they are connected. It is spoken to over the socket PMI_FD, which has one owner: a program
 * that calls MPI_Init must not use it, and exchanges values by MPI. Without a launcher rank 0 keeps
 * such a store for the others, at an address that all know. */
#ifndef COLLECTIVES_DIRECTORY_H
#define COLLECTIVES_DIRECTORY_H

#include "collectives.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct coll_directory coll_directory;

typedef struct coll_directory_options {
  size_t size;             /* sizeof(coll_directory_options) */
  int32_t pmi;             /* the protocol: 1 (mpiexec) or 2 (srun) */
  double timeout;          /* seconds for the greeting; 0: 300 */
  coll_stop_function stop; /* whether to give up; NULL: never */
  void* stop_context;      /* for it */
  const char* at;          /* of a store without a launcher, where `pmi` is 0: where rank 0 listens,
                              "192.0.2.7:29500"; all below counts there only */
  const uint8_t* secret;   /* COLL_SECRET_BYTES that only the ranks of this job know */
  const char* job;         /* NULL: "default" */
  int32_t attempt;         /* a restart of a job counts up */
  int32_t rank;
  int32_t ranks;
  const char* trouble; /* NULL, or why this rank cannot take part: what the others are told where
                          it gives up before all have come */
  double silence;      /* seconds after which a machine that leaves something unanswered is taken
                          for dead; 0: 15 */
} coll_directory_options;

/* Of a launcher: reads PMI_FD, PMI_RANK and PMI_SIZE and greets it. The socket is closed with it,
 * so a process opens it once. Without one: returns when all ranks are connected with rank 0; each
 * has proved that it knows the secret. What they put is not secret. */
coll_status coll_directory_open(const coll_directory_options* options, coll_directory** directory);
/* Who this process is; -1 and 0 without a directory. */
int32_t coll_directory_rank(const coll_directory* directory);
int32_t coll_directory_ranks(const coll_directory* directory);
/* `timeout` of the calls below: in seconds, 0: 300. After one of them has failed, all fail.
 * A key, 1 to 32 letters, digits, '.', '_' and '-', is put once; a value is any bytes. */
coll_status coll_directory_put(coll_directory* directory, const char* key, const void* value,
                               size_t bytes, double timeout);
/* What any rank put before the last fence. `*bytes` is how long it is; where that is more than
 * `room`, nothing is copied and COLL_INVALID_ARGUMENT returned. */
coll_status coll_directory_get(coll_directory* directory, const char* key, void* value, size_t room,
                               size_t* bytes, double timeout);
/* Returns when all ranks have called it. */
coll_status coll_directory_fence(coll_directory* directory, double timeout);
/* Takes leave of the launcher, without which mpiexec takes the end of the process for a crash.
 * NULL is allowed. */
void coll_directory_close(coll_directory* directory);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Choices that were measured: the part of the public C interface that collectives.h includes. They
 * go before the library's own where a call leaves algorithm and mode open. */
#ifndef COLLECTIVES_TUNING_H
#define COLLECTIVES_TUNING_H

#include "collectives.h"
#include "collectives_prediction.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What calls of a kind run whose vectors have `from` bytes or more, up to the next such line. */
typedef struct coll_choice {
  uint32_t size; /* sizeof(coll_choice): lets later versions extend it */
  int32_t kind;
  int32_t far;       /* 1: while the cores share no cache; of ranks that share memory only */
  int32_t algorithm; /* its index; -1: the library chooses again from here on */
  int32_t mode;      /* COLL_MODE_STAGED or COLL_MODE_INLINE; -1: between machines */
  int32_t lag;       /* tiles between one round and the next */
  uint64_t from;
  uint64_t tile_bytes; /* 0: chunks travel whole */
} coll_choice;

/* From the next call on; persistent calls stay as they are. Local, and all ranks must do it with
 * the same lines, in any order, between the same two of their calls: calls that were chosen by
 * other tables end in COLL_MISMATCH. No line: the library chooses. */
coll_status coll_tune(coll_comm* comm, const coll_choice* lines, size_t count);
/* Whether COLLECTIVES_ALGORITHM may say this among so many ranks: COLL_OK, or why not. */
coll_status coll_check_wishes(const char* words, int32_t ranks);
/* What a call of the kind whose vector has so many bytes would run, of near cores or far ones;
 * *tuned becomes whether the lines of coll_tune() say so. */
coll_status coll_chosen(coll_comm* comm, int32_t kind, size_t bytes, int32_t far, coll_choice* out,
                        int32_t* tuned);

/* The cores that the ranks have between them, of the first 64, where these are fewer than the
 * ranks; 0: each can have one of its own. Ranks that have made no call do not count.
 * COLL_UNSUPPORTED between machines. */
coll_status coll_shared_cores(coll_comm* comm, int32_t* cores);

/* Of rank 0 of ranks that share memory: choices that all ranks take in the same call, soon, without
 * a call for it (at most 256 lines; they replace what was announced before). They go behind those
 * of coll_tune(). `cores`: only if the ranks have so many (of the first 64) between them, which is
 * known once all have made a call; 0: however many. COLL_INVALID_ARGUMENT on other ranks. */
coll_status coll_announce(coll_comm* comm, const coll_choice* lines, size_t count, int32_t cores);
/* Refines the library's choices while the program runs: its own calls take turns with other plans,
 * and rank 0, by how long they take, decides and announces; of allreduce, reduce_scatter, allgather
 * and alltoall, whose ranks all wait for each other. What that costs, about `budget` seconds in all
 * at most (0: nothing more is tried). `machine` (NULL: a usual one) is for a first guess. On other
 * ranks than 0, of one rank alone and of more than 16, it does nothing. COLL_UNSUPPORTED between
 * machines. */
coll_status coll_refine(coll_comm* comm, double budget, const coll_machine* machine);

#ifdef __cplusplus
}
#endif
#endif

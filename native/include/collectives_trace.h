/* SPDX-License-Identifier: Apache-2.0
 *
 * What a rank did when: the part of the public C interface that collectives.h includes. Nothing of
 * it reads a clock unless it is asked for. */
#ifndef COLLECTIVES_TRACE_H
#define COLLECTIVES_TRACE_H

#include "collectives.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The last collective of a rank that is done. */
typedef struct coll_last_call {
  uint32_t size;     /* sizeof(coll_last_call): lets later versions extend it */
  int32_t kind;      /* -1: none is done, or the last one failed */
  int32_t parts;     /* 1: with a length for each rank */
  int32_t dtype;     /* a coll_dtype */
  int32_t algorithm; /* its index, or what coll_add_schedule() gave */
  int32_t mode;      /* a coll_mode; COLL_MODE_AUTO: by messages between machines */
  uint64_t number;   /* counts from 1 */
  uint64_t bytes;    /* of the whole vector; of alltoall, of what one rank hands in */
  double seconds;    /* that it took on this rank; 0: see coll_tell_times() */
  double waiting;    /* in how many of these it waited for other ranks */
  int32_t way;       /* of arrays on GPUs COLL_GPU_LAUNCH or COLL_GPU_HOST; else 0 */
  uint32_t blocks;   /* of arrays on GPUs: how many calls it was cut into */
  char reason[256];  /* of COLL_GPU_HOST: why there was no launch; else empty */
} coll_last_call;

/* How the ranks of a call of arrays on GPUs reached each other: in launches there, which are not
 * timed, or through memory of the host. */
enum { COLL_GPU_LAUNCH = 1, COLL_GPU_HOST = 2 };

/* Which calls tell how long they take. Large are those of 16384 elements and more, and of lengths
 * for each rank; between machines, all. */
enum { COLL_TIMES_OF_NONE = 0, COLL_TIMES_OF_LARGE = 1, COLL_TIMES_OF_ALL = 2 };
/* Of the calls that begin from now on; by default none. May be called by any thread, also during a
 * call. */
coll_status coll_tell_times(coll_comm* comm, int32_t which);
/* The last collective. Like a call: not during another one. */
coll_status coll_last(coll_comm* comm, coll_last_call* out);

/* Kinds of events. */
enum {
  COLL_TRACE_OPERATION = 0, /* a collective */
  COLL_TRACE_MESSAGE = 1,   /* a call of collectives_messages.h */
  COLL_TRACE_STEP = 2,      /* what a rank does in an operation */
  COLL_TRACE_WAIT = 3       /* for another rank */
};
/* Steps besides those of COLL_ACT_SEND and so on: where an operation has waited before the first
 * one, and after the last. */
enum { COLL_ACT_ENTER = 4, COLL_ACT_LEAVE = 5 };
/* Kinds of messages. */
enum {
  COLL_TRACE_SEND = 0,
  COLL_TRACE_RECV = 1,
  COLL_TRACE_SENDRECV = 2,
  COLL_TRACE_PROBE = 3,
  COLL_TRACE_WAITED = 4, /* coll_wait() */
  COLL_TRACE_ISEND = 5,
  COLL_TRACE_IRECV = 6
};

/* What an operation is a part of, where that is a collective of sparse vectors or Adasum, or is
 * about a plan: its first step, in which the ranks agree. The others are messages, or operations of
 * their own. */
enum {
  COLL_TRACE_SPARSE_ALLREDUCE = 5,
  COLL_TRACE_SPARSE_REDUCE_SCATTER = 6,
  COLL_TRACE_SPARSE_ALLGATHER = 7,
  COLL_TRACE_SPARSE_BROADCAST = 8,
  COLL_TRACE_SPARSE_PLAN = 9,
  COLL_TRACE_SPARSE_PLAN_REDUCE = 10,
  COLL_TRACE_ADASUM = 11
};

/* Steps and waits come behind the operation or message call that they lie in. Steps of ranks that
 * share memory follow one another; between machines folds, and the messages to a rank and from it,
 * go on beside each other. */
typedef struct coll_trace_event {
  int64_t begin; /* nanoseconds of CLOCK_MONOTONIC */
  int64_t end;
  uint64_t call;  /* the number of the operation; message calls are counted apart */
  uint64_t bytes; /* of an operation as in coll_last_call; of a receive, for which there is room */
  int32_t what;   /* COLL_TRACE_OPERATION, ... */
  int32_t act;    /* of a step: COLL_ACT_SEND, ... */
  int32_t kind;   /* of an operation a collective; of a message call COLL_TRACE_SEND, ... */
  int32_t parts;  /* of an operation: 1: with a length for each rank */
  int32_t dtype;
  int32_t op; /* of an operation that folds */
  int32_t algorithm;
  int32_t mode; /* COLL_MODE_AUTO: by messages between machines */
  /* COLL_TRACE_SPARSE_ALLREDUCE, ...; 1 to 4: a part of coll_split() or alike; else 0 */
  int32_t purpose;
  int32_t failed; /* 1: an operation or message call that failed */
  int32_t peer;   /* the other end, who is waited for, or the root; -1: none or several */
  int32_t peers;  /* how many other ends a step has */
  int32_t round;  /* of a step, that of its schedule */
  int32_t tile;   /* of a step */
} coll_trace_event;

/* Keeps the events of the calls that begin from now on, up to `most` (1 to 2^24), for which room is
 * made at once. May be called by any thread, also during a call. */
coll_status coll_trace_begin(coll_comm* comm, size_t most);
/* No call that begins from now on is recorded. What was recorded stays until the next
 * coll_trace_begin(). */
coll_status coll_trace_end(coll_comm* comm);
/* Copies the first events of whole calls, `room` at most. *count becomes how many there are,
 * *dropped how many found no room when they were recorded. By any thread. */
coll_status coll_trace_read(coll_comm* comm, coll_trace_event* events, size_t room, size_t* count,
                            uint64_t* dropped);

#ifdef __cplusplus
}
#endif
#endif

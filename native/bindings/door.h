/* SPDX-License-Identifier: Apache-2.0
 * What a Handle (collectives/handle.py) shares with the calls that C makes for Python. Only who
 * holds the lock of the interpreter reads or writes it. */
#ifndef COLLECTIVES_DOOR_H
#define COLLECTIVES_DOOR_H

#include "collectives.h"

/* What a sparse allreduce in the short way took. */
typedef struct coll_sparse_taken {
  uint64_t sequence; /* 0: there was none */
  double seconds;
  int32_t dtype;         /* of the values */
  coll_sparse_view view; /* of its result, whose memory may be gone */
} coll_sparse_taken;

/* What a call of a plan in the short way took. */
typedef struct coll_plan_taken {
  uint64_t sequence; /* 0: there was none */
  double seconds;
  uint64_t bytes, messages;
  int32_t rounds;
  int32_t way; /* a coll_sparse_plan_way */
} coll_plan_taken;

typedef struct coll_door {
  coll_comm* comm;     /* NULL: closed */
  int32_t in_call;     /* a call is in progress, or a persistent one was started */
  coll_sparse* sparse; /* where a sparse allreduce puts its result */
  coll_sparse_taken sparse_taken;
  coll_plan_taken plan_taken;
} coll_door;

int32_t install_plain_calls(void);

/* A coll_stop_function: asked_to_stop() of Python, on the main thread, which alone runs handlers of
 * signals. Any other may not ask: where the interpreter ends meanwhile, it would end within C++. */
int32_t main_asked_to_stop(void* context);

#endif

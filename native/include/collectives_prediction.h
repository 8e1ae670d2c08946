/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a call would take, by a simulation of the plan that would run: the part of the public C
 * interface that collectives.h includes. */
#ifndef COLLECTIVES_PREDICTION_H
#define COLLECTIVES_PREDICTION_H

#include "collectives.h"
#include "collectives_simulate.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Seconds per byte, by how many bytes are worked on: four points, their bytes ascending. */
typedef struct coll_curve {
  double bytes[4];
  double seconds_per_byte[4];
} coll_curve;

/* Between two cores, by the bytes of a message, through slots that are used in turns as in calls.
 */
typedef struct coll_core_costs {
  double flag;               /* seconds until one sees what the other has stored */
  coll_curve read;           /* what the other has just written */
  coll_curve write;          /* over what the other has read */
  coll_curve streamed_read;  /* what the other has written around the caches */
  coll_curve streamed_write; /* over what the other has read, around the caches */
  int32_t measured;          /* 0: derived from the other placement, or usual */
} coll_core_costs;

/* What a machine costs ranks that share its memory. */
typedef struct coll_machine {
  uint32_t size;        /* sizeof(coll_machine): lets later versions extend it */
  int32_t cores;        /* that the ranks have between them; 0: one each */
  double private_cache; /* bytes, of a core */
  double shared_cache;  /* bytes, of several */
  double op;            /* seconds of an op of a plan, whatever it moves */
  double call;          /* seconds of a call, whatever it does */
  double turn;          /* seconds until a core works for another rank */
  double fold;          /* seconds per byte of an operand, where memory costs nothing */
  coll_curve read;      /* a rank's own data, by the bytes of all that it goes through */
  coll_curve write;     /* likewise */
  coll_curve stream;    /* likewise, around the caches */
  coll_core_costs near; /* of cores that share a cache */
  coll_core_costs far;  /* of cores that share none */
} coll_machine;

/* Those of a machine with two cores of an AMD EPYC, where nothing is measured. */
coll_status coll_usual_machine(coll_machine* out);

/* Measures for about so many seconds (0.001 to 60) what the machine costs the ranks of a
 * communicator that share memory; *out is the same on all ranks. Every rank calls it, with the same
 * `seconds`, between the same two of its calls: right after a barrier, and with another one right
 * after it. COLL_TIMEOUT where a rank does not come within ten seconds more. `flags` (NULL: not
 * wanted) has room for p * p numbers: seconds until rank i % p sees what rank i / p has stored; 0:
 * not measured. */
coll_status coll_measure_machine(coll_comm* comm, double seconds, coll_machine* out, double* flags);

/* What is predicted. */
typedef struct coll_prediction {
  uint32_t size;     /* sizeof(coll_prediction) */
  int32_t algorithm; /* its index */
  int32_t p;
  int32_t root;
  int32_t mode;      /* COLL_MODE_STAGED, ...; between machines it does not count */
  int32_t lag;       /* tiles between one round and the next, 64 at most */
  int32_t far;       /* 1: the cores share no cache */
  int32_t streams;   /* 1: stages go around the caches where that is faster */
  int32_t agrees;    /* 1: all ranks wait for all at the beginning, as in large calls */
  int32_t depth;     /* slots, or tiles under way between machines; 0: as many as usual */
  int32_t pace;      /* between machines; 0: any */
  int32_t alone;     /* 1: all ranks begin a call together once the one before it is over */
  double bytes;      /* of the longest buffer of a rank: the vector */
  double tile_bytes; /* of a stage, or between machines of a chunk; 0: as many as there is room */
} coll_prediction;

/* Seconds from call to call where one follows another on all ranks; or of a call alone, until its
 * last rank has left it. COLL_ABORTED as coll_work_stop_by() says. */
coll_status coll_predict(const coll_machine* machine, const coll_prediction* task, double* seconds);
/* The same between machines: its ranks are the first of the network. */
coll_status coll_predict_wire(const coll_network* network, const coll_prediction* task,
                              double* seconds);

#ifdef __cplusplus
}
#endif
#endif

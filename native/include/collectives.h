/* SPDX-License-Identifier: Apache-2.0
 *
 * The public C interface of pycollectives. Plain C11; of the standard library it needs stddef.h and
 * stdint.h alone. The headers at its end are parts of it.
 *
 * Every function that can fail returns a coll_status; the sentence that explains the last failure
 * of the calling thread is read with coll_last_error(). A null pointer where something is needed is
 * COLL_INVALID_ARGUMENT, a null communicator COLL_CLOSED. Enumerators are never renumbered. The
 * cffi binding is generated from this file: keep it to enums, structs and prototypes.
 */
#ifndef COLLECTIVES_H
#define COLLECTIVES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What became of a call. */
typedef enum coll_status {
  COLL_OK = 0,
  COLL_INVALID_ARGUMENT = 1, /* the caller's own argument is wrong; nothing was sent */
  COLL_UNSUPPORTED = 2,      /* a legal wish that this build or algorithm cannot serve */
  COLL_MISMATCH = 3,         /* the ranks did not make the same call */
  COLL_TIMEOUT = 4,          /* the time-out of the call ran out */
  COLL_PEER_LOST = 5,        /* another rank died or left */
  COLL_ABORTED = 6,          /* some rank aborted the communicator */
  COLL_CLOSED = 7,           /* the communicator was closed by this rank */
  COLL_OUT_OF_MEMORY = 8,
  COLL_SYSTEM = 9,      /* a system call failed; the text names it */
  COLL_BOOTSTRAP = 10,  /* the ranks could not find each other */
  COLL_INTERNAL = 11,   /* a bug in this library */
  COLL_IN_PROGRESS = 12 /* not an error: call coll_resume() again */
} coll_status;

typedef enum coll_kind {
  COLL_ALLREDUCE = 0,
  COLL_REDUCE_SCATTER = 1,
  COLL_ALLGATHER = 2,
  COLL_BROADCAST = 3,
  COLL_REDUCE = 4,
  COLL_BARRIER = 5,
  COLL_GATHER = 6,
  COLL_SCATTER = 7,
  COLL_ALLTOALL = 8,
  COLL_SCAN = 9,   /* rank r gets the fold of ranks 0 ... r */
  COLL_EXSCAN = 10 /* of ranks 0 ... r-1; rank 0 gets nothing */
} coll_kind;

typedef enum coll_dtype {
  COLL_FLOAT32 = 0,
  COLL_FLOAT64 = 1,
  COLL_INT32 = 2,
  COLL_INT64 = 3,
  COLL_UINT8 = 4,
  COLL_BFLOAT16 = 5,
  COLL_INT8 = 6,
  COLL_INT16 = 7,
  COLL_UINT16 = 8,
  COLL_UINT32 = 9,
  COLL_UINT64 = 10,
  COLL_BOOL = 11, /* one byte; results are 0 or 1, any byte but 0 is true */
  COLL_FLOAT16 = 12,
  COLL_COMPLEX64 = 13, /* two float32: real, imaginary */
  COLL_COMPLEX128 = 14,
  COLL_FLOAT8_E4M3FN = 15,
  COLL_FLOAT8_E5M2 = 16,
  COLL_FLOAT32_INT32 = 17, /* for minloc and maxloc: struct { float value; int32_t index; } */
  COLL_FLOAT64_INT64 = 18, /* and so on */
  COLL_INT32_INT32 = 19,
  COLL_INT64_INT64 = 20
} coll_dtype;

typedef enum coll_op {
  COLL_SUM = 0,
  COLL_PROD = 1,
  COLL_MIN = 2,
  COLL_MAX = 3,
  COLL_AVG = 4,  /* floating point and complex */
  COLL_LAND = 5, /* logical and: the results are 0 or 1. All but complex and pairs */
  COLL_LOR = 6,
  COLL_LXOR = 7,
  COLL_BAND = 8, /* bit by bit: integers and bool */
  COLL_BOR = 9,
  COLL_BXOR = 10,
  COLL_MINLOC = 11, /* pairs: the smaller value, and the smaller index of equal ones */
  COLL_MAXLOC = 12
} coll_op;

/* Where the bytes of a message lie (docs: plan). COLL_MODE_AUTO lets the library choose. */
typedef enum coll_mode {
  COLL_MODE_AUTO = -1,
  COLL_MODE_STAGED = 0, /* through slots of the shared segment */
  COLL_MODE_INLINE = 1, /* staged, the flag behind the payload in its last cache line */
  COLL_MODE_PULL = 2,   /* the receiver reads the peer's buffer: ranks in one address space */
  COLL_MODE_PUSH = 3    /* the sender writes the peer's buffer: ranks in one address space */
} coll_mode;

/* What partial results are kept in on their way; the result is then rounded once (docs:
 * arithmetic). 0: in the dtype of the arrays. */
typedef enum coll_accumulate {
  COLL_ACCUMULATE_AS_STORED = 0,
  COLL_ACCUMULATE_FLOAT32 = 1, /* float16, bfloat16, float8 */
  COLL_ACCUMULATE_FLOAT64 = 2, /* these, and float32 */
  COLL_ACCUMULATE_COMPLEX64 = 3,
  COLL_ACCUMULATE_COMPLEX128 = 4 /* complex64 */
} coll_accumulate;

/* What the bits of a result may depend on besides the contributions (docs: arithmetic). */
typedef enum coll_reproducible {
  COLL_NOT_REPRODUCIBLE = 0,  /* on the algorithm, which depends on ranks and bytes */
  COLL_REPRODUCIBLE = 1,      /* on the number of ranks: their canonical summation tree */
  COLL_REPRODUCIBLE_ANY_P = 2 /* on nothing: sums are exact, and rounded once. sum and avg */
} coll_reproducible;

/* For coll_split(): this rank is to be in no group. */
typedef enum coll_color { COLL_NO_COLOR = -1 } coll_color;

typedef struct coll_comm coll_comm;

/* Asked at least every 50 ms, and after every signal, while ranks wait for one another in
 * coll_init(); anything but 0 ends that with COLL_ABORTED. Must not throw. Also for coll_stop_by().
 */
typedef int32_t (*coll_stop_function)(void* context);

/* How to make a communicator. Zero-initialise, set `size`, then what differs from the default. */
typedef struct coll_options {
  size_t size;             /* sizeof(coll_options): lets the struct grow */
  int32_t rank;            /* 0 ... ranks-1 */
  int32_t ranks;           /* how many ranks take part */
  const char* job;         /* one name for all ranks of a job; NULL: "default" */
  int32_t attempt;         /* restarts of a job count up, so that late-comers are refused */
  double timeout;          /* seconds for a call, and for finding the others; 0: 300 */
  size_t slot_bytes;       /* size of one staging slot per rank; 0: what fits */
  int32_t interruptible;   /* 1: a blocked call returns COLL_IN_PROGRESS every 50 ms */
  coll_stop_function stop; /* whether to give up finding the others; NULL: never */
  void* stop_context;      /* for it */
  const char* trusted;     /* networks that this rank trusts, to be equal on all ranks; NULL: "" */
  const char* refusal;     /* why it cannot take part: all ranks are told, and coll_init() fails on
                            * all of them with COLL_INVALID_ARGUMENT; NULL: it can */
} coll_options;

/* One collective. `count` is elements of: the whole vector (allreduce, broadcast, reduce, scan,
 * exscan), the whole input (reduce_scatter, alltoall; a multiple of ranks), one rank's part
 * (allgather, gather, scatter). */
typedef struct coll_call {
  size_t size; /* sizeof(coll_call) */
  int32_t kind;
  int32_t dtype;
  int32_t op;
  int32_t root;
  const void* input; /* == output: in place. allgather and reduce_scatter in place: see docs */
  void* output;
  size_t count;
  const size_t* counts; /* unequal parts: their lengths; NULL: equal ones. See the ..v functions */
  int32_t algorithm;    /* index in the table of algorithms; -1: choose */
  int32_t mode;         /* a coll_mode */
  double timeout;       /* seconds; 0: the communicator's */
  int32_t accumulate;   /* a coll_accumulate */
  const char* agreed;   /* words that all ranks must pass alike, which errors quote; NULL: none */
  int32_t reproducible; /* a coll_reproducible */
  double of_timeout; /* seconds of which `timeout` is what is left, for error texts; 0: it is all */
} coll_call;

/* ---- life of a communicator ------------------------------------------------------------- */

/* One rank of a job of processes on this machine. Blocks until all ranks have arrived. */
coll_status coll_init(const coll_options* options, coll_comm** comm);
/* Reads COLLECTIVES_RANK, _SIZE and others (docs/environment.md); without them: a communicator of
 * one. */
coll_status coll_init_from_environment(int32_t interruptible, coll_comm** comm);
/* `options->ranks` communicators for as many threads of this process, in `comms[0 ... ranks-1]`. */
coll_status coll_local(const coll_options* options, coll_comm** comms);
/* Local, never waits for peers. Reports a mismatch that a one-way call could not see.
 * The handle is gone afterwards, whatever is returned. */
coll_status coll_close(coll_comm* comm);
/* Floods: every rank's present and later calls return COLL_ABORTED with `reason`. */
coll_status coll_abort(coll_comm* comm, const char* reason);

/* Asked every 10 ms or so while this rank is at work alone, in a call by messages (of sparse
 * vectors, Adasum) and while it makes the plan of a call, which of very many ranks takes seconds:
 * for its signals, as such work does not return COLL_IN_PROGRESS. Anything but 0 ends the call with
 * COLL_ABORTED; tell the others by coll_abort(). NULL: nobody is asked. */
coll_status coll_stop_by(coll_comm* comm, coll_stop_function stop, void* context);

/* As coll_abort(), for ranks that mean to go on: those that live then call coll_shrink(). */
coll_status coll_revoke(coll_comm* comm);
/* Ends the communicator, where a failure has not yet, and makes one of the ranks that live, in
 * their order: each of them calls it, and is waited for. They agree on who lives: nobody whose
 * process or machine is gone, or who closed. timeout: seconds; 0: the communicator's.
 * COLL_IN_PROGRESS: go on with coll_resume(). Once for each communicator, which is then to be
 * closed. */
coll_status coll_shrink(coll_comm* comm, double timeout, coll_comm** made);

/* This rank, 0 ... ranks-1; -1 for NULL. */
int32_t coll_rank(const coll_comm* comm);
/* How many ranks the communicator has; 0 for NULL. */
int32_t coll_ranks(const coll_comm* comm);
/* Whether that rank, or any where `rank` is -1, is lost, without a call: COLL_PEER_LOST where its
 * process has ended without coll_close(). Between machines: as far as this rank is connected to it,
 * a moment later, and COLL_OK while a call is under way, which finds that out. Never waits; may run
 * beside a call. */
coll_status coll_look(coll_comm* comm, int32_t rank);
/* How many collectives this communicator has begun. */
uint64_t coll_sequence(const coll_comm* comm);
/* Seconds that a call may take which does not say; 0 for NULL. */
double coll_timeout(const coll_comm* comm);

/* ---- collectives ---------------------------------------------------------------------------- */

/* Makes the call and returns when this rank's part is done and its buffers are its own again. All
 * ranks must make the same calls in the same order; where they do not, all get COLL_MISMATCH. */
coll_status coll_run(coll_comm* comm, const coll_call* call);
/* Refuses what coll_run() would refuse of its arguments, on this rank alone: makes no call. May run
 * beside one. */
coll_status coll_validate(coll_comm* comm, const coll_call* call);
/* Goes on with a call that returned COLL_IN_PROGRESS. */
coll_status coll_resume(coll_comm* comm);

/* The same without a struct, for bindings: one call, plain arguments. */
coll_status coll_collective(coll_comm* comm, int32_t kind, const void* input, void* output,
                            size_t count, int32_t dtype, int32_t op, int32_t root,
                            int32_t algorithm, int32_t mode, double timeout);

/* output := the fold of all ranks' inputs, on every rank. */
coll_status coll_allreduce(coll_comm* comm, const void* input, void* output, size_t count,
                           int32_t dtype, int32_t op);
/* output (count / ranks elements) := this rank's part of the fold of all inputs (count elements).
 */
coll_status coll_reduce_scatter(coll_comm* comm, const void* input, void* output, size_t count,
                                int32_t dtype, int32_t op);
/* The same with a part of counts[r] elements for rank r; all ranks pass the same counts. */
coll_status coll_reduce_scatterv(coll_comm* comm, const void* input, void* output,
                                 const size_t* counts, int32_t dtype, int32_t op);
/* output (ranks * count elements) := all ranks' inputs (count elements), in rank order. */
coll_status coll_allgather(coll_comm* comm, const void* input, void* output, size_t count,
                           int32_t dtype);
/* The same with counts[r] elements from rank r; all ranks pass the same counts. */
coll_status coll_allgatherv(coll_comm* comm, const void* input, void* output, const size_t* counts,
                            int32_t dtype);
/* output := the root's input, on every rank. Only the root's input is read. */
coll_status coll_broadcast(coll_comm* comm, const void* input, void* output, size_t count,
                           int32_t dtype, int32_t root);
/* output := the fold of all inputs, on the root. Elsewhere output is not touched and may be NULL.
 */
coll_status coll_reduce(coll_comm* comm, const void* input, void* output, size_t count,
                        int32_t dtype, int32_t op, int32_t root);
/* output (ranks * count elements) := all ranks' inputs (count elements), in rank order, on the
 * root. Elsewhere output is not touched and may be NULL. */
coll_status coll_gather(coll_comm* comm, const void* input, void* output, size_t count,
                        int32_t dtype, int32_t root);
/* The same with counts[r] elements from rank r; all ranks pass the same counts. */
coll_status coll_gatherv(coll_comm* comm, const void* input, void* output, const size_t* counts,
                         int32_t dtype, int32_t root);
/* output (count elements) := this rank's part of the root's input (ranks * count elements).
 * Elsewhere input is not read and may be NULL. */
coll_status coll_scatter(coll_comm* comm, const void* input, void* output, size_t count,
                         int32_t dtype, int32_t root);
/* The same with counts[r] elements to rank r; all ranks pass the same counts. */
coll_status coll_scatterv(coll_comm* comm, const void* input, void* output, const size_t* counts,
                          int32_t dtype, int32_t root);
/* Block s of output := block `this rank` of rank s's input. input and output have count elements
 * each, in as many equal blocks as there are ranks. */
coll_status coll_alltoall(coll_comm* comm, const void* input, void* output, size_t count,
                          int32_t dtype);
/* The same with counts[s * ranks + d] elements from rank s to rank d; all ranks pass the same
 * ranks * ranks counts. */
coll_status coll_alltoallv(coll_comm* comm, const void* input, void* output, const size_t* counts,
                           int32_t dtype);
/* output := the fold of the inputs of ranks 0 ... this one. */
coll_status coll_scan(coll_comm* comm, const void* input, void* output, size_t count, int32_t dtype,
                      int32_t op);
/* output := the fold of the inputs of all ranks before this one. Rank 0's output is not touched and
 * may be NULL. */
coll_status coll_exscan(coll_comm* comm, const void* input, void* output, size_t count,
                        int32_t dtype, int32_t op);
/* Returns when all ranks have entered. */
coll_status coll_barrier(coll_comm* comm);

/* ---- groups of the ranks of a communicator ----------------------------------------------------
 *
 * All ranks of `comm` call the same of these, in the same order as its collectives; each gets the
 * communicator of its new group in `*made`, or NULL where it is in none. A new communicator has the
 * time-out of `comm`, and a sequence, clock and failure of its own: an abort of one does not reach
 * the other, and either may be closed first. Where forming a group fails on one rank, for want of
 * memory say, all ranks get that error, no group is made, and `comm` works on. Where
 * COLL_IN_PROGRESS is returned, `*made` is set by coll_resume().
 */

/* Ranks that pass one color form a group, in the order of their keys, then of their ranks. */
coll_status coll_split(coll_comm* comm, int64_t color, int64_t key, coll_comm** made);
/* The group of these n ranks, in this order. All ranks of `comm` pass the same list. */
coll_status coll_subgroup(coll_comm* comm, const int32_t* ranks, int32_t n, coll_comm** made);
/* The same ranks once more, for calls that are independent of those of `comm`. */
coll_status coll_dup(coll_comm* comm, coll_comm** made);
/* The ranks lie in a mesh of this shape, in row-major order: the group of those that differ from
 * this one along `axis` at most. All ranks pass the same; `name` is for errors, and may be NULL. */
coll_status coll_axis(coll_comm* comm, const int32_t* shape, int32_t axes, int32_t axis,
                      const char* name, coll_comm** made);

/* ---- operations of the user ------------------------------------------------------------------ */

/* right[i] := left[i] op right[i] for `count` elements of `dtype`; left is of the lower ranks. Must
 * be associative, and must not throw, or call this library. Returns 0; anything else ends the
 * communicator on all ranks. */
typedef int32_t (*coll_op_function)(const void* left, void* right, size_t count, int32_t dtype,
                                    void* context);
/* A number for coll_call.op. All ranks must make theirs in the same order: in a call the number,
 * `name` (NULL: none) and `commutative` are compared, what the function does cannot be. Where
 * `commutative` is 0, only algorithms that keep the order of ranks are used. At most 128 exist. */
coll_status coll_op_create(coll_op_function function, void* context, int32_t commutative,
                           const char* name, int32_t* op);
/* No call may be using it. */
coll_status coll_op_free(int32_t op);

/* ---- errors -----------------------------------------------------------------------------------
 */

/* The last failure of the calling thread, as a sentence. Never NULL. */
const char* coll_last_error(void);
/* The rank at fault in that failure, -1 where there is none. */
int32_t coll_last_error_rank(void);
/* "peer_lost" for COLL_PEER_LOST, and so on. */
const char* coll_status_name(int32_t status);
/* "allreduce"; "collective" where it is none. */
const char* coll_kind_name(int32_t kind);
/* Of the library, for instance "0.1.0". */
const char* coll_version(void);

/* An environment variable that the library reads. */
typedef struct coll_variable {
  const char* name;
  const char* type;
  const char* fallback; /* its value where it is not set */
  const char* sentence;
} coll_variable;

/* How many there are. */
int32_t coll_variable_count(void);
/* The variable at 0 ... count-1. */
coll_status coll_variable_get(int32_t index, coll_variable* out);

#ifdef __cplusplus
}
#endif

#include "collectives_adasum.h"     /* gradients, added where they differ */
#include "collectives_algorithms.h" /* algorithms as data */
#include "collectives_directory.h"  /* values between ranks that are not connected yet */
#include "collectives_exact.h"      /* exact sums of several contributions */
#include "collectives_gpu.h"        /* arrays in the memory of a GPU */
#include "collectives_gpu_sparse.h" /* sparse vectors there */
#include "collectives_memory.h"     /* arrays that all ranks can reach */
#include "collectives_messages.h"   /* messages between two ranks */
#include "collectives_persistent.h" /* calls that are prepared once and begun often */
#include "collectives_prediction.h" /* how long a call would take */
#include "collectives_simulate.h"   /* schedules on networks that need not be here */
#include "collectives_sparse.h"     /* vectors of which most elements are zero */
#include "collectives_trace.h"      /* what a rank did when */
#include "collectives_tuning.h"     /* choices that were measured */
#include "collectives_wire.h"       /* ranks on several machines */
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives of sparse vectors: the part of the public C interface that collectives.h includes.
 *
 * Elements that are absent are zero. Nothing that is passed is written; results are new. An element
 * that some rank gives and whose result is zero may be among those of the result or not: where a
 * part has all its values nobody can tell. It is alike on all ranks. */
#ifndef COLLECTIVES_SPARSE_H
#define COLLECTIVES_SPARSE_H

#include "collectives.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In which form a result is delivered. */
typedef enum coll_sparse_output {
  COLL_SPARSE_AUTO = 0,  /* that which takes fewer bytes */
  COLL_SPARSE_PAIRS = 1, /* ascending indices, and values */
  COLL_SPARSE_DENSE = 2  /* all values */
} coll_sparse_output;

/* How indices travel. */
typedef enum coll_sparse_coding {
  COLL_SPARSE_CODING_AUTO = 0,  /* raw where all ranks share memory, else coded */
  COLL_SPARSE_CODING_RAW = 1,   /* 4 or 8 bytes for each */
  COLL_SPARSE_CODING_CODED = 2, /* each part in the fewest bytes: as a bitmap, or in blocks of
                                 * Elias and Fano's code, about their entropy and one bit more */
  COLL_SPARSE_CODING_QUICK = 3  /* the fewest of the codes that are read as quickly as memory: a
                                 * bitmap, 16 bits for each, or raw */
} coll_sparse_coding;

typedef enum coll_sparse_choice {
  COLL_SPARSE_CHOOSE = -1,        /* the library chooses the algorithm */
  COLL_SPARSE_AS_DENSE = 1048576, /* the dense collective, of vectors made dense */
  COLL_SPARSE_AT_ONCE = 1048577   /* what ran where all vectors are so short (a kilobyte) that they
                                   * went with the first step; not to be asked for */
} coll_sparse_choice;

/* One algorithm of sparse vectors: a schedule of the table of algorithms, whose messages carry
 * pairs, or all values of a part where these take fewer bytes. */
typedef struct coll_sparse_algorithm {
  int32_t kind;
  const char* name; /* unique within its kind */
  const char* paper;
  const char* summary;
  int32_t schedule; /* its index among the algorithms */
} coll_sparse_algorithm;

/* How many there are, over all kinds. */
int32_t coll_sparse_algorithm_count(void);
/* The algorithm at 0 ... count-1; its strings live as long as the library. */
coll_status coll_sparse_algorithm_get(int32_t index, coll_sparse_algorithm* out);

/* COLL_ALLREDUCE, COLL_REDUCE_SCATTER, COLL_ALLGATHER (one after another) or COLL_BROADCAST, of
 * this rank's vector. All ranks pass the same but for their entries. Indices in any order; the
 * values of one index are added. */
typedef struct coll_sparse_call {
  size_t size; /* sizeof(coll_sparse_call) */
  int32_t kind;
  int32_t dtype;     /* of the values */
  int32_t op;        /* of the library; what is absent is zero */
  int32_t root;      /* of a broadcast; what the others pass is not looked at but for the length */
  int32_t algorithm; /* an index, or a coll_sparse_choice */
  int32_t output;    /* a coll_sparse_output */
  int32_t index_dtype; /* an integer */
  const void* indices;
  const void* values;
  size_t entries;
  uint64_t length;       /* elements of the vector, those that are zero among them */
  double dense_above;    /* a part of which more than this share is there travels with all values;
                          * 0: where that takes fewer bytes */
  double timeout;        /* seconds, for all of it; 0: the communicator's */
  double of_timeout;     /* as of coll_call */
  const char* agreed;    /* what all ranks say alike, as the shape that the vector is of; or NULL */
  int32_t coding;        /* a coll_sparse_coding */
  int32_t quantise_bits; /* 2, 4 or 8: an allreduce's result is quantised (QSGD), which runs
                          * dsar_split_allgather: each value becomes one of 3, 15 or 255 levels up
                          * to the largest of 1024, by chance and right on average; all ranks get
                          * the same bits. Of float32, float64, float16 and bfloat16. 0: exact */
  uint64_t seed;         /* of that chance: the same call of the same communicator rounds alike */
  int32_t reproducible; /* a coll_reproducible: the bits are those of the dense collective, whatever
                         * the algorithm; what a rank has under one index is added before */
  uint64_t largest;     /* of an allreduce's sum so many elements, those of the largest magnitude
                         * (NaN before all, of equal ones the lowest indices), exactly; this runs
                         * ssar_split_allgather. Dtypes as quantise_bits. 0: all */
} coll_sparse_call;

/* What a call gave. */
typedef struct coll_sparse coll_sparse;

/* COLL_IN_PROGRESS: go on with coll_resume(); until that is COLL_OK the arrays and the call's place
 * for the result must stay. The result is the caller's, for coll_sparse_free(). */
coll_status coll_sparse_run(coll_comm* comm, const coll_sparse_call* call, coll_sparse** result);
/* Ends a result; NULL is none. */
void coll_sparse_free(coll_sparse* result);

typedef struct coll_sparse_view {
  int32_t dense;       /* 1: all values, and no indices */
  int32_t index_bytes; /* 4 or 8; unsigned */
  size_t entries;      /* values that are there */
  uint64_t length;
  const void* indices; /* ascending */
  const void* values;
  int32_t algorithm; /* that ran: an index, or a coll_sparse_choice */
  int32_t rounds;    /* after the one in which the ranks agreed */
  uint64_t bytes;    /* that this rank sent in them, with all headers of its own; of
                      * COLL_SPARSE_AT_ONCE as the ranks agreed; of a dense collective
                      * 0, as the rounds and messages of both are */
  uint64_t messages;
} coll_sparse_view;

/* What is in it, for as long as it is there. */
coll_status coll_sparse_look(const coll_sparse* result, coll_sparse_view* out);

/* Sums at indices that stay the same (Zhao & Canny, Kylix, ICPP'14): these travel once. */
typedef struct coll_sparse_indices {
  size_t size; /* sizeof(coll_sparse_indices) */
  uint64_t length;
  int32_t index_dtype; /* an integer, of both */
  const void* given;   /* where this rank will have values; in any order, also several times */
  size_t given_count;
  const void* asked; /* where it wants sums; NULL: where it has values */
  size_t asked_count;
  const int32_t* degrees; /* of the layers of a butterfly, whose product is the number of ranks;
                           * NULL: the library chooses the way, by what has to travel */
  int32_t layers;
  double timeout;
} coll_sparse_indices;

typedef struct coll_sparse_plan coll_sparse_plan;

/* All ranks make it together, each with indices of its own. As coll_sparse_run(). */
coll_status coll_sparse_plan_make(coll_comm* comm, const coll_sparse_indices* indices,
                                  coll_sparse_plan** plan);
/* Writes to `sums` what was asked for: the sum over ranks, zero where nobody has given a value.
 * `values` are in the order of the indices that were given. COLL_IN_PROGRESS: go on with
 * coll_resume(); the arrays and the plan must stay until then. op: COLL_SUM, COLL_AVG. */
coll_status coll_sparse_plan_reduce(coll_comm* comm, coll_sparse_plan* plan, const void* values,
                                    void* sums, int32_t dtype, int32_t op, double timeout);
/* Bytes and messages that this rank has sent in the last call, and the rounds that it took, the
 * first one while the ranks agreed. A block of an alltoall is a message. */
coll_status coll_sparse_plan_sent(const coll_sparse_plan* plan, uint64_t* bytes, uint64_t* messages,
                                  int32_t* rounds);
/* How the values of a plan go, the same on all ranks. */
typedef enum coll_sparse_plan_way {
  COLL_PLAN_BUTTERFLY = 0, /* each rank sums a stretch of the vector, in layers (Kylix) */
  COLL_PLAN_OWNERS = 1,    /* each index is summed by a rank that gives it */
  COLL_PLAN_DIRECT = 2     /* who gives sends to all that ask */
} coll_sparse_plan_way;
coll_status coll_sparse_plan_how(const coll_sparse_plan* plan, int32_t* way);
/* Ends a plan, which no call is using; NULL is none. */
void coll_sparse_plan_free(coll_sparse_plan* plan);

/* The k of n elements that are largest in magnitude, by ascending index, k <= n: writes k indices,
 * unsigned, of index_bytes (4 or 8), and k values. COLL_FLOAT32, COLL_FLOAT64, COLL_BFLOAT16 and
 * COLL_FLOAT16. NaNs are the largest of all; of equal magnitudes the lowest indices are taken. No
 * array may overlap another. */
coll_status coll_top_k(const void* x, int32_t dtype, uint64_t n, uint64_t k, int32_t index_bytes,
                       void* indices, void* values);
/* Counts the elements whose magnitude is `threshold` or more, and NaNs, and writes the first `room`
 * of them, as coll_top_k() does. */
coll_status coll_select_above(const void* x, int32_t dtype, uint64_t n, double threshold,
                              int32_t index_bytes, uint64_t room, void* indices, void* values,
                              uint64_t* found);

#ifdef __cplusplus
}
#endif
#endif

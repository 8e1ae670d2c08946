/* SPDX-License-Identifier: Apache-2.0
 *
 * Algorithms, their proofs, schedules and plans as data: the part of the public C interface that
 * collectives.h includes. */
#ifndef COLLECTIVES_ALGORITHMS_H
#define COLLECTIVES_ALGORITHMS_H

#include "collectives.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct coll_algorithm {
  int32_t kind;
  const char* name;        /* for instance "ring": unique within its kind */
  const char* paper;       /* author, title, venue, year */
  const char* summary;     /* one sentence */
  const char* rounds;      /* formula in p, L = ceil(log2 p), K = floor(log2 p), P = 2^K */
  const char* bytes;       /* sent by the busiest rank, as a share of the vector; "" not claimed */
  const char* reductions;  /* folded by the busiest rank, as a share of the vector */
  const char* restriction; /* "" any p */
} coll_algorithm;

/* How many there are, over all kinds. */
int32_t coll_algorithm_count(void);
/* The algorithm at 0 ... count-1; its strings live as long as the library. */
coll_status coll_algorithm_get(int32_t index, coll_algorithm* out);
/* Index of `name` among the algorithms of `kind`; -1 where there is none. */
int32_t coll_algorithm_find(int32_t kind, const char* name);
/* 1 where the algorithm is defined for p ranks. */
int32_t coll_algorithm_fits(int32_t index, int32_t p);
/* Value of a claim formula for p ranks. */
coll_status coll_formula(const char* formula, int32_t p, double* value);
/* What the dispatcher takes for this call. */
coll_status coll_choose(int32_t kind, int32_t ranks, size_t bytes, int32_t* algorithm,
                        int32_t* mode);

/* A proof, or why there is none. */
typedef struct coll_proof {
  int32_t proved;
  int32_t rounds;
  double bytes;               /* sent by the busiest rank / vector */
  double reductions;          /* operands folded by the busiest rank / vector */
  int32_t same_tree_on_ranks; /* every rank's result has the same summation tree */
  int32_t same_tree_in_vector;
  int32_t rank_order;        /* operands in rank order: legal for non-commutative operators */
  int32_t canonical;         /* the tree that COLL_REPRODUCIBLE asks for */
  int32_t one_fold;          /* one op folds all: narrow floats are rounded once */
  int32_t ops, waits, posts; /* of rank 0's plan; zero for a schedule */
  char message[512];         /* the first thing wrong: rank, step, chunk */
} coll_proof;

/* Which properties a proof looks at. Used alone they show what each check is worth. */
typedef enum coll_check {
  COLL_CHECK_STRUCTURE = 1,
  COLL_CHECK_MATCHING = 2,
  COLL_CHECK_DEFINED = 4, /* nothing undefined is read, no hazard inside a round */
  COLL_CHECK_RESULT = 8,  /* each contribution exactly once, in the right cell */
  COLL_CHECK_INPUT = 16,  /* input untouched out of place */
  COLL_CHECK_COST = 32,   /* counted = claimed */
  COLL_CHECK_TREE = 64,   /* the summation tree is the one declared */
  COLL_CHECK_ALL = 127
} coll_check;

/* Whom what follows here asks now and then, on this thread, whether to give up: anything but 0 ends
 * it with COLL_ABORTED, and its memory is given back. NULL, as at first: nobody. */
void coll_work_stop_by(coll_stop_function stop, void* context);

/* Proves the schedule of an algorithm for p ranks. COLL_OK also where `out->proved` is 0. */
coll_status coll_prove(int32_t algorithm, int32_t p, int32_t root, int32_t in_place,
                       coll_proof* out);
/* How the moves of a plan may store. */
typedef enum coll_stores {
  COLL_STORES_ORDINARY = 0,
  COLL_STORES_NON_TEMPORAL = 1 /* around the caches: others see them in any order until a fence */
} coll_stores;

/* How a schedule is lowered to a plan of the segment engine. */
typedef struct coll_lowering {
  size_t size;    /* sizeof(coll_lowering) */
  int32_t mode;   /* a coll_mode */
  int32_t depth;  /* slots per rank: 1 and more */
  int32_t lag;    /* tiles between one round and the next */
  int32_t stores; /* a coll_stores: those that the plan is right with; ordinary ones always are */
} coll_lowering;

/* The plan of this algorithm, lowered so: three calls back to back, proved independently of its
 * derivation. */
coll_status coll_prove_plan(int32_t algorithm, int32_t p, int32_t root, int32_t in_place,
                            const coll_lowering* how, coll_proof* out);

/* Schedules and plans as flat arrays of int32 (docs/encoding.md). coll_free() them. */
coll_status coll_schedule(int32_t algorithm, int32_t p, int32_t root, int32_t** data,
                          size_t* length);
/* The plan, before it is bound to any buffer. */
coll_status coll_plan(int32_t algorithm, int32_t p, int32_t root, const coll_lowering* how,
                      int32_t** data, size_t* length);
/* Proves an encoded schedule or plan; `algorithm` names the claims to hold it to, -1 none. */
coll_status coll_prove_encoded(const int32_t* data, size_t length, int32_t in_place,
                               int32_t algorithm, int32_t checks, coll_proof* out);
/* Writes a schedule rank by rank, with the verbs of the built-in algorithms. Rounds ascend; sends
 * of a round come before its receives. `chunks` lists (first, count) pairs. */
typedef struct coll_builder coll_builder;
/* chunks: in how many parts the vector is cut. */
coll_status coll_builder_new(int32_t kind, int32_t p, int32_t root, int32_t chunks,
                             coll_builder** builder);
/* What follows is the program of this rank; each rank's is written once, in any order. */
coll_status coll_builder_rank(coll_builder* builder, int32_t rank);
/* Hands the chunks to each of the peers. */
coll_status coll_builder_send(coll_builder* builder, int32_t round, const int32_t* peers,
                              size_t n_peers, const int32_t* chunks, size_t n_pairs);
/* Takes the chunks as the peer sent them. */
coll_status coll_builder_recv(coll_builder* builder, int32_t round, int32_t peer,
                              const int32_t* chunks, size_t n_pairs);
/* Folds what the peers sent, in this order; -1 stands for this rank's own value. */
coll_status coll_builder_recv_reduce(coll_builder* builder, int32_t round, const int32_t* order,
                                     size_t n_order, int32_t balanced, const int32_t* chunks,
                                     size_t n_pairs);
/* Copies chunks from one of this rank's buffers (0 input, 1 output, 2 scratch) to another. */
coll_status coll_builder_copy(coll_builder* builder, int32_t round, int32_t from, int32_t to,
                              const int32_t* chunks, size_t n_pairs);
/* The finished schedule, encoded (coll_free() it). The builder is of no use afterwards. */
coll_status coll_builder_finish(coll_builder* builder, int32_t** data, size_t* length);
/* Also after coll_builder_finish(). */
void coll_builder_free(coll_builder* builder);
/* Makes an encoded schedule an algorithm of this communicator, if it proves: its number for
 * coll_call.algorithm. All ranks must be given the same ones, of one name (NULL: none), in the same
 * order: calls compare them. Whether all ranks of an allreduce get the same bits is told by
 * coll_proof.same_tree_on_ranks. */
coll_status coll_add_schedule(coll_comm* comm, const int32_t* data, size_t length, const char* name,
                              int32_t* algorithm);

/* How the members of a group talk, at one level of a hierarchical schedule. Allreduce,
 * reduce_scatter and allgather take all but binomial; broadcast, reduce and barrier take direct and
 * binomial. */
typedef enum coll_phase {
  COLL_PHASE_RING = 0,
  COLL_PHASE_CIRCULANT = 1,
  COLL_PHASE_DIRECT = 2,
  COLL_PHASE_HALVING = 3, /* groups of a power of two */
  COLL_PHASE_BINOMIAL = 4
} coll_phase;

/* A hierarchical schedule for ranks on sockets of hosts of racks: one phase per level, the level of
 * the nearest ranks first. Hosts may have any numbers of ranks, and those any numbers. */
typedef struct coll_product {
  size_t size; /* sizeof(coll_product) */
  int32_t kind, p, root;
  int32_t levels;        /* 1 (all ranks are alike), 2 (hosts), 3, ... */
  const int32_t* groups; /* (levels - 1) * p numbers: that of each rank's group, finest groups
                          * first; they nest. NULL for one level */
  const int32_t* phases; /* a coll_phase for each level */
  int32_t far_first;     /* 0: the nearest level begins. 1: the farthest. 2, of an allreduce: the
                          * nearest for one half of the vector, the farthest for the other. For 1
                          * and 2 all groups of a level must be of one size */
} coll_product;

/* The schedule, encoded (coll_free() it): for coll_add_schedule(). */
coll_status coll_product_schedule(const coll_product* product, int32_t** data, size_t* length);
/* Proves it, and compares its cost with what is claimed. */
coll_status coll_product_prove(const coll_product* product, int32_t in_place, coll_proof* out);
/* What passes the border of a member of a level's groups (at the last level: of a host, say) out
 * and in, in vectors: of the member with the most of it. */
coll_status coll_product_between(const coll_product* product, int32_t level, double* sent,
                                 double* received);

/* Frees what coll_schedule() or coll_plan() handed out. */
void coll_free(void* data);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a schedule would take on a network that need not be here: the part of the public C
 * interface that collectives.h includes. */
#ifndef COLLECTIVES_SIMULATE_H
#define COLLECTIVES_SIMULATE_H

#include "collectives.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Links, each with a latency and a rate, and the way between two ranks. */
typedef struct coll_network coll_network;

/* Of words such as "fat-tree:1024,oversubscription=4" (docs/simulate.md). */
coll_status coll_network_of_words(const char* words, coll_network** made);

/* What a message costs on its way from rank to rank. */
typedef struct coll_link {
  double latency; /* seconds of a short message, `overhead` of both ends included */
  double seconds_per_byte;
  double overhead; /* seconds for which each end is busy */
  double bucket;   /* bytes that pass at once after a pause, where a bucket of tokens shapes it */
  double overhead_per_byte; /* seconds for which each end is busy with each byte */
} coll_link;

/* What was measured. Ranks lie in rooms: groups[l * p + r] is the number, from 0 on, of the room of
 * rank r on level l, the finest first. links[l] is that of two ranks that first meet on level l;
 * there is one more of them than levels, for those that meet on none. A latency of NaN is not
 * known: a simulation in which a message goes by such a link is refused. */
typedef struct coll_rooms {
  uint32_t size; /* sizeof(coll_rooms): lets later versions extend it */
  int32_t p;
  int32_t levels;
  const int32_t* groups;
  const char* const* names; /* of links */
  const coll_link* links;
  int32_t pairs;             /* that are unlike their level */
  const int32_t* pair_ranks; /* low, high of each */
  const coll_link* pair_links;
  int32_t machines;          /* whose cores ranks share; 0: each rank has one of its own */
  const int32_t* machine_of; /* of each rank, from 0 on */
  const int32_t* cores;      /* of each machine; 0: one for each of its ranks */
} coll_rooms;
coll_status coll_network_of_rooms(const coll_rooms* rooms, coll_network** made);

/* Of NULL nothing. */
void coll_network_free(coll_network* network);
/* 0 of NULL. */
int32_t coll_network_ranks(const coll_network* network);
/* Kinds of links: "leaf up". */
int32_t coll_network_classes(const coll_network* network);
/* NULL where there is no such kind. */
const char* coll_network_class(const coll_network* network, int32_t index);

/* What is simulated. */
typedef struct coll_task {
  uint32_t size;     /* sizeof(coll_task) */
  int32_t algorithm; /* its index; -1: the schedule in `words` */
  int32_t p;
  int32_t root;
  const int32_t* words; /* docs/encoding.md */
  size_t length;
  double bytes;  /* of the longest buffer of a rank: the vector */
  int32_t tiles; /* in which it travels, each round one behind the round before */
  /* Asked now and then; anything but 0 ends the simulation with COLL_ABORTED. NULL: it is not. */
  int32_t (*stop)(void* context);
  void* stop_context;
} coll_task;

typedef struct coll_simulated {
  double seconds; /* until the last rank is done */
  int64_t messages;
  int32_t rounds;
  double busiest_bytes;   /* of the link that is taken for the longest, */
  double busiest_seconds; /* and for how long it is; 0: there are no messages */
  char busiest[64];       /* its name */
} coll_simulated;

/* Values never change. */
enum { COLL_ACT_SEND = 0, COLL_ACT_RECEIVE = 1, COLL_ACT_FOLD = 2, COLL_ACT_COPY = 3 };

/* What a rank did from when to when, in seconds. Of a receive, its waiting included; of a send,
 * until the message has arrived. */
typedef struct coll_moment {
  double begin;
  double end;
  double bytes;
  int32_t rank;
  int32_t peer; /* -1: none */
  int32_t round;
  int32_t tile;
  int32_t act;
} coll_moment;

/* class_bytes has room for what links of each kind carry. `moments` (NULL: none are wanted) has
 * room for `capacity` of them, and *count becomes how many there are, in the order of the
 * simulation. */
coll_status coll_simulate(const coll_network* network, const coll_task* task, coll_simulated* out,
                          double* class_bytes, coll_moment* moments, size_t capacity,
                          size_t* count);

#ifdef __cplusplus
}
#endif
#endif

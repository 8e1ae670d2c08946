/* SPDX-License-Identifier: Apache-2.0
 * What the parts of the stand-in for libnccl share. It serves one process: a communicator of one
 * rank moves memory of the host, one of several takes note of its calls and does nothing. */
#ifndef STANDIN_H
#define STANDIN_H

#include <stddef.h>
#include <stdint.h>

enum {
  kSuccess = 0,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kInProgress = 7,
  kUnset = INT32_MIN,
};

typedef struct {
  char internal[128];
} unique_id;

typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking;
  int cga_cluster_size;
  int min_ctas;
  int max_ctas;
  const char* net_name;
  int split_share;
  int traffic_class;
  const char* comm_name;
  int collnet_enable;
  int cta_policy;
  int shrink_share;
  int nvls_ctas;
  int channels_per_net_peer;
  int nvlink_centric_sched;
  int graph_usage_mode;
  int num_rma_ctx;
  int max_p2p_peers;
  int graph_stream_ordering;
  int launch_order_implicit;
  int num_rma_sig;
  int rma_eager_init;
  int host_cft_mode;
  int nvls_host_mode;
} config;

typedef struct comm {
  int rank;
  int ranks;
  int device;
  int blocking;
  int polls;          /* how often it is still to be said to be in progress */
  int error;          /* what CommGetAsyncError tells then */
  struct comm** cell; /* where its child is to be written when it is done, and the child */
  struct comm* child;
} comm;

/* Appends a line to what standin_log() returns. */
void record(const char* format, ...);
/* What a function of this name is to return: success, or what standin_fail() has asked for. */
int outcome(const char* function);
/* What a function on a communicator returns in the end: a communicator that does not block is in
 * progress, at once or when the group ends. */
int begun(comm* on);
/* A new communicator, written at once or when the group ends. */
int make(comm** cell, int rank, int ranks, int device, const config* told);
int in_group(void);

#endif

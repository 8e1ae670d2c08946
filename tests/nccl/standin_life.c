// SPDX-License-Identifier: Apache-2.0
// The stand-in for libnccl: versions, errors, communicators, groups, memory.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "standin.h"

enum { kMost = 64 };

static char text[1 << 16];
static size_t written;
static int version = 23007;
static int progress = 0;  // polls until a communicator that does not block is done
static int refused;
static char refused_function[64];
static char last[256];
static int depth;
static comm* in_this_group[kMost];
static int members;
static comm** cells[kMost];
static comm* made[kMost];
static int makes;
static int released;

void record(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int n = vsnprintf(text + written, sizeof text - written, format, arguments);
  va_end(arguments);
  if (n > 0 && written + (size_t)n + 1 < sizeof text) {
    written += (size_t)n;
    text[written++] = '\n';
    text[written] = '\0';
  }
}

// ---- what tests ask for -------------------------------------------------------------------------

const char* standin_log(void) { return text; }
void standin_clear(void) {
  written = 0;
  text[0] = '\0';
  refused_function[0] = '\0';
  last[0] = '\0';
  progress = 0;
}
void standin_version(int code) { version = code; }
void standin_progress(int polls) { progress = polls; }
void standin_async_error(comm* on, int code) { on->error = code; }
int standin_released(void) { return released; }
void standin_fail(const char* function, int code, const char* said) {
  snprintf(refused_function, sizeof refused_function, "%s", function);
  snprintf(last, sizeof last, "%s", said);
  refused = code;
}

int coll_nccl_takes_host_arrays(void) { return 1; }

int outcome(const char* function) {
  return strcmp(function, refused_function) == 0 ? refused : kSuccess;
}

int begun(comm* on) {
  if (depth > 0) {
    for (int i = 0; i < members; ++i) {
      if (in_this_group[i] == on) return kSuccess;
    }
    if (members < kMost) in_this_group[members++] = on;
    return kSuccess;
  }
  if (on->blocking || progress == 0) return kSuccess;
  on->polls = progress;
  return kInProgress;
}

int in_group(void) { return depth > 0; }

// ---- versions and errors ------------------------------------------------------------------------

int ncclGetVersion(int* code) {
  *code = version;
  return kSuccess;
}
const char* ncclGetErrorString(int code) {
  return code == kSuccess ? "no error" : code == kInvalidArgument ? "invalid argument" : "failed";
}
const char* ncclGetLastError(const comm* on) {
  (void)on;
  return last;
}
int ncclCommGetAsyncError(comm* on, int* code) {
  *code = on->polls > 0 ? kInProgress : on->error;
  if (on->polls > 0) --on->polls;
  if (*code == kSuccess && on->child != NULL) {
    *on->cell = on->child;
    on->child = NULL;
  }
  return outcome("ncclCommGetAsyncError");
}

// ---- groups -------------------------------------------------------------------------------------

int ncclGroupStart(void) {
  record("ncclGroupStart");
  ++depth;
  return outcome("ncclGroupStart");
}
static int left(const char* function) {
  record("%s", function);
  if (--depth > 0) return kSuccess;
  const int failed = outcome(function);
  int result = failed;
  for (int i = 0; i < makes; ++i) *cells[i] = failed ? NULL : made[i];
  for (int i = 0; i < members && !failed; ++i) {
    if (begun(in_this_group[i]) == kInProgress) result = kInProgress;
  }
  members = makes = 0;
  return result;
}
int ncclGroupEnd(void) { return left("ncclGroupEnd"); }

typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  float estimated_time;
} simulation;

int ncclGroupSimulateEnd(simulation* info) {
  const int result = left("ncclGroupSimulateEnd");
  record("simulation %zu %x %u", info->size, info->magic, info->version);
  info->estimated_time = 12.5F;
  return result;
}

// ---- communicators ------------------------------------------------------------------------------

int make(comm** cell, int rank, int ranks, int device, const config* told) {
  comm* one = calloc(1, sizeof *one);
  one->rank = rank;
  one->ranks = ranks;
  one->device = device;
  one->blocking = told == NULL || told->blocking != 0;
  if (depth > 0 && makes < kMost) {
    cells[makes] = cell;
    made[makes++] = one;
    *cell = NULL;
  } else {
    *cell = one;
  }
  return begun(one);
}

static void record_config(const config* told) {
  if (told == NULL) return;
  record("config %zu %x %u", told->size, told->magic, told->version);
  if (told->net_name != NULL) record("netName %s", told->net_name);
  if (told->comm_name != NULL) record("commName %s", told->comm_name);
  // The numbers, in their order, without those that are not set.
  const int numbers[] = {told->blocking,
                         told->cga_cluster_size,
                         told->min_ctas,
                         told->max_ctas,
                         told->split_share,
                         told->traffic_class,
                         told->collnet_enable,
                         told->cta_policy,
                         told->shrink_share,
                         told->nvls_ctas,
                         told->channels_per_net_peer,
                         told->nvlink_centric_sched,
                         told->graph_usage_mode,
                         told->num_rma_ctx,
                         told->max_p2p_peers,
                         told->graph_stream_ordering,
                         told->launch_order_implicit,
                         told->num_rma_sig,
                         told->rma_eager_init,
                         told->host_cft_mode,
                         told->nvls_host_mode};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i) {
    if (numbers[i] != kUnset) record("number %zu %d", i, numbers[i]);
  }
}

int ncclGetUniqueId(unique_id* id) {
  for (int i = 0; i < 128; ++i) id->internal[i] = (char)(i * 7);
  return outcome("ncclGetUniqueId");
}
int ncclCommInitRank(comm** cell, int ranks, unique_id id, int rank) {
  record("ncclCommInitRank %d %d id %d %d", ranks, rank, id.internal[1], id.internal[127]);
  const int failed = outcome("ncclCommInitRank");
  return failed ? failed : make(cell, rank, ranks, 0, NULL);
}
int ncclCommInitRankConfig(comm** cell, int ranks, unique_id id, int rank, config* told) {
  record("ncclCommInitRankConfig %d %d id %d", ranks, rank, id.internal[127]);
  record_config(told);
  return make(cell, rank, ranks, 0, told);
}
int ncclCommInitRankScalable(comm** cell, int ranks, int rank, int n, unique_id* ids,
                             config* told) {
  record("ncclCommInitRankScalable %d %d ids %d last %d", ranks, rank, n, ids[n - 1].internal[127]);
  record_config(told);
  return make(cell, rank, ranks, 0, told);
}
int ncclCommInitAll(comm** list, int n, const int* devices) {
  for (int i = 0; i < n; ++i) make(&list[i], i, n, devices == NULL ? i : devices[i], NULL);
  return outcome("ncclCommInitAll");
}
int ncclCommSplit(comm* on, int color, int key, comm** cell, config* told) {
  record("ncclCommSplit %d %d", color, key);
  record_config(told);
  if (color < 0) return begun(on);
  const config like = {.blocking = on->blocking};
  make(cell, on->rank, on->ranks, on->device, told == NULL ? &like : told);
  const int result = begun(on);
  if (result == kInProgress) {
    on->cell = cell;
    on->child = *cell;
    *cell = NULL;
  }
  return result;
}
int ncclCommShrink(comm* on, const int* excluded, int n, comm** cell, config* told, int flags) {
  record("ncclCommShrink %d first %d flags %d", n, excluded[0], flags);
  record_config(told);
  return make(cell, on->rank, on->ranks - n, on->device, told);
}
int ncclCommCount(const comm* on, int* count) {
  *count = on->ranks;
  return kSuccess;
}
int ncclCommUserRank(const comm* on, int* rank) {
  *rank = on->rank;
  return kSuccess;
}
int ncclCommCuDevice(const comm* on, int* device) {
  *device = on->device;
  return kSuccess;
}
int ncclCommFinalize(comm* on) {
  record("ncclCommFinalize");
  return begun(on);
}
static int gone(const char* function, comm* on) {
  record("%s %d", function, on->rank);
  free(on);
  ++released;
  return outcome(function);
}
int ncclCommDestroy(comm* on) { return gone("ncclCommDestroy", on); }
int ncclCommAbort(comm* on) { return gone("ncclCommAbort", on); }
int ncclCommRevoke(comm* on, int flags) {
  record("ncclCommRevoke %d", flags);
  return begun(on);
}
int ncclCommSuspend(comm* on, int flags) {
  record("ncclCommSuspend %d", flags);
  return begun(on);
}
int ncclCommResume(comm* on) {
  record("ncclCommResume");
  return begun(on);
}
int ncclCommMemStats(comm* on, int stat, uint64_t* value) {
  (void)on;
  *value = 1000U + (uint64_t)stat;
  return kSuccess;
}

// SPDX-License-Identifier: Apache-2.0
// The stand-in for libnccl: collectives, messages, operations, memory. Of one rank all collectives
// are copies, with a factor where the operation has one.
#include <stdlib.h>
#include <string.h>

#include "standin.h"

enum { kFirstOwn = 5, kOps = 64, kFloat32 = 7, kFloat64 = 8 };

typedef struct {
  int used;
  int dtype;
  double factor;
} scaled;

static scaled ops[kOps];

static size_t bytes_of(int dtype) {
  static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return dtype >= 0 && dtype < 12 ? sizes[dtype] : 0;
}

static unsigned long number(const void* address) { return (unsigned long)(uintptr_t)address; }

static void copy(const void* from, void* to, size_t count, int dtype, int op) {
  if (from != to) memmove(to, from, count * bytes_of(dtype));
  if (op < kFirstOwn) return;
  const double factor = ops[op - kFirstOwn].factor;
  for (size_t i = 0; i < count; ++i) {
    if (dtype == kFloat32) ((float*)to)[i] = (float)(((float*)to)[i] * factor);
    if (dtype == kFloat64) ((double*)to)[i] *= factor;
  }
}

static int collective(const char* name, const void* send, void* recv, size_t count, int dtype,
                      int op, int root, comm* on, void* stream) {
  record("%s %#lx %#lx %zu dtype %d op %d root %d rank %d stream %#lx", name, number(send),
         number(recv), count, dtype, op, root, on->rank, number(stream));
  const int failed = outcome(name);
  if (failed) return failed;
  if (dtype < 0 || dtype > 11 || op >= kFirstOwn + kOps) return kInvalidArgument;
  if (on->ranks == 1 && !in_group()) copy(send, recv, count, dtype, op);
  return begun(on);
}

int ncclAllReduce(const void* send, void* recv, size_t count, int dtype, int op, comm* on,
                  void* stream) {
  return collective("ncclAllReduce", send, recv, count, dtype, op, -1, on, stream);
}
int ncclReduce(const void* send, void* recv, size_t count, int dtype, int op, int root, comm* on,
               void* stream) {
  return collective("ncclReduce", send, recv, count, dtype, op, root, on, stream);
}
int ncclBroadcast(const void* send, void* recv, size_t count, int dtype, int root, comm* on,
                  void* stream) {
  return collective("ncclBroadcast", send, recv, count, dtype, -1, root, on, stream);
}
int ncclBcast(void* array, size_t count, int dtype, int root, comm* on, void* stream) {
  return collective("ncclBcast", array, array, count, dtype, -1, root, on, stream);
}
int ncclAllGather(const void* send, void* recv, size_t count, int dtype, comm* on, void* stream) {
  return collective("ncclAllGather", send, recv, count, dtype, -1, -1, on, stream);
}
int ncclReduceScatter(const void* send, void* recv, size_t count, int dtype, int op, comm* on,
                      void* stream) {
  return collective("ncclReduceScatter", send, recv, count, dtype, op, -1, on, stream);
}
int ncclAlltoAll(const void* send, void* recv, size_t count, int dtype, comm* on, void* stream) {
  return collective("ncclAlltoAll", send, recv, count, dtype, -1, -1, on, stream);
}
int ncclGather(const void* send, void* recv, size_t count, int dtype, int root, comm* on,
               void* stream) {
  return collective("ncclGather", send, recv, count, dtype, -1, root, on, stream);
}
int ncclScatter(const void* send, void* recv, size_t count, int dtype, int root, comm* on,
                void* stream) {
  return collective("ncclScatter", send, recv, count, dtype, -1, root, on, stream);
}

static int message(const char* name, const void* array, size_t count, int dtype, int peer, comm* on,
                   void* stream) {
  record("%s %#lx %zu dtype %d peer %d rank %d stream %#lx", name, number(array), count, dtype,
         peer, on->rank, number(stream));
  const int failed = outcome(name);
  return failed ? failed : begun(on);
}
int ncclSend(const void* array, size_t count, int dtype, int peer, comm* on, void* stream) {
  return message("ncclSend", array, count, dtype, peer, on, stream);
}
int ncclRecv(void* array, size_t count, int dtype, int peer, comm* on, void* stream) {
  return message("ncclRecv", array, count, dtype, peer, on, stream);
}

// ---- operations ---------------------------------------------------------------------------------

int ncclRedOpCreatePreMulSum(int* op, void* scalar, int dtype, int residence, comm* on) {
  (void)on;
  int free_one = 0;
  while (free_one < kOps && ops[free_one].used) ++free_one;
  if (free_one == kOps) return kInvalidUsage;
  scaled* made = &ops[free_one];
  made->used = 1;
  made->dtype = dtype;
  made->factor = dtype == kFloat32 ? *(float*)scalar : dtype == kFloat64 ? *(double*)scalar : 1.0;
  record("ncclRedOpCreatePreMulSum dtype %d residence %d bytes %02x%02x", dtype, residence,
         ((unsigned char*)scalar)[0], ((unsigned char*)scalar)[1]);
  *op = kFirstOwn + free_one;
  return kSuccess;
}
int ncclRedOpDestroy(int op, comm* on) {
  (void)on;
  record("ncclRedOpDestroy %d", op);
  ops[op - kFirstOwn].used = 0;
  return kSuccess;
}

// ---- memory -------------------------------------------------------------------------------------

int ncclMemAlloc(void** memory, size_t size) {
  *memory = calloc(1, size);
  record("ncclMemAlloc %zu", size);
  return outcome("ncclMemAlloc");
}
int ncclMemFree(void* memory) {
  record("ncclMemFree %#lx", number(memory));
  free(memory);
  return kSuccess;
}
int ncclCommRegister(comm* on, void* memory, size_t size, void** handle) {
  (void)on;
  record("ncclCommRegister %#lx %zu", number(memory), size);
  *handle = memory;
  return kSuccess;
}
int ncclCommDeregister(comm* on, void* handle) {
  (void)on;
  record("ncclCommDeregister %#lx", number(handle));
  return kSuccess;
}
int ncclCommWindowRegister(comm* on, void* memory, size_t size, void** window, int flags) {
  record("ncclCommWindowRegister %#lx %zu flags %d", number(memory), size, flags);
  *window = memory;
  return begun(on);
}
int ncclCommWindowDeregister(comm* on, void* window) {
  record("ncclCommWindowDeregister %#lx", number(window));
  return begun(on);
}
int ncclWinGetUserPtr(comm* on, void* window, void** memory) {
  (void)on;
  *memory = window;
  return kSuccess;
}
int ncclPutSignal(const void* array, size_t count, int dtype, int peer, void* window, size_t offset,
                  int signal, int context, unsigned int flags, comm* on, void* stream) {
  record(
      "ncclPutSignal %#lx %zu dtype %d peer %d window %#lx offset %zu signal %d context %d "
      "flags %u stream %#lx",
      number(array), count, dtype, peer, number(window), offset, signal, context, flags,
      number(stream));
  if (on->ranks == 1) memcpy((char*)window + offset, array, count * bytes_of(dtype));
  return begun(on);
}
int ncclSignal(int peer, int signal, int context, unsigned int flags, comm* on, void* stream) {
  record("ncclSignal peer %d signal %d context %d flags %u stream %#lx", peer, signal, context,
         flags, number(stream));
  return begun(on);
}

typedef struct {
  int count;
  int peer;
  int signal;
  int context;
} awaited;

int ncclWaitSignal(int n, const awaited* signals, comm* on, void* stream) {
  for (int i = 0; i < n; ++i) {
    record("ncclWaitSignal count %d peer %d signal %d context %d stream %#lx", signals[i].count,
           signals[i].peer, signals[i].signal, signals[i].context, number(stream));
  }
  return begun(on);
}

int ncclParamGetParameter(const char* key, const char** value, int* length) {
  *value = key;
  *length = (int)strlen(key);
  return kSuccess;
}

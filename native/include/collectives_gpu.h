/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives of arrays in the memory of a GPU: the part of the public C interface that
 * collectives.h includes. The kernels are a library of their own, opened when it is first asked
 * for. Ranks that are threads of one process (coll_local), or the only one, run a call in one
 * launch on the GPU that all of them share; processes of one machine that have a GPU each, whose
 * memory the others can open, in a launch each. Arrays of all others go through memory of the host,
 * a block at a time: so what the host can do is there for them, and for what no kernel does. */
#ifndef COLLECTIVES_GPU_H
#define COLLECTIVES_GPU_H

#include "collectives.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Set `size` to sizeof(coll_gpu). */
typedef struct coll_gpu {
  size_t size;
  char name[128];
  int32_t major, minor; /* compute capability */
  int32_t multiprocessors;
  uint64_t memory; /* bytes */
} coll_gpu;

/* How many GPUs there are; where there is none, `why` gets a sentence of at most `room` bytes, the
 * zero at its end included (NULL: none is wanted). */
int32_t coll_gpu_count(char* why, size_t room);
/* What a GPU is. */
coll_status coll_gpu_get(int32_t device, coll_gpu* gpu);
/* The GPU whose memory this is; -1: it is the host's, or there is no GPU. */
int32_t coll_gpu_owner(const void* memory);
/* Memory of a GPU, all zero, and its end. */
coll_status coll_gpu_allocate(int32_t device, size_t bytes, void** memory);
coll_status coll_gpu_free(int32_t device, void* memory);
/* Between memory of a GPU and of the host, after what is on the stream; it waits until the bytes
 * are there. So messages (coll_send() and the like) carry such arrays through memory of the host.
 * COLL_UNSUPPORTED where the stream is being captured into a graph. */
coll_status coll_gpu_copy(int32_t device, void* to, const void* from, size_t bytes, void* stream);

/* Makes the call on arrays of this GPU. When it returns, the collective is enqueued: after what the
 * streams of all ranks held, before what they get. `stream` is a cudaStream_t, NULL the default
 * one. As coll_run(), all ranks make the same calls in the same order. Through memory of the host
 * it returns when the ranks have exchanged all, and the rest of the result is on its way to the
 * GPU. Processes say each its own GPU; they get COLL_UNSUPPORTED where a stream is being captured
 * into a graph. */
coll_status coll_gpu_run(coll_comm* comm, const coll_call* call, int32_t device, void* stream);
/* A call that is planned once: its code, and all memory of the GPU that it takes, are there then.
 * All ranks make it, as a collective (among several processes it reaches nobody), and begin it in
 * the same order among their other calls.
 * `*persistent` is there once this, or coll_resume(), has returned COLL_OK. */
typedef struct coll_gpu_persistent coll_gpu_persistent;
coll_status coll_gpu_persistent_new(coll_comm* comm, const coll_call* call, int32_t device,
                                    coll_gpu_persistent** persistent);
/* Enqueues it, as coll_gpu_run() does. */
coll_status coll_gpu_persistent_run(coll_gpu_persistent* persistent, void* stream);
/* Before its communicator is closed. NULL is allowed. */
coll_status coll_gpu_persistent_free(coll_gpu_persistent* persistent);

/* Of calls that are captured into a graph the streams of all ranks are one, or have joined one
 * capture. A call of which no other was made before is refused there, as it has to take memory of
 * the GPU: a persistent one is not. What a graph uses stays until its communicator is closed, and
 * no replay may come later. */

/* Whether the stream is being captured into a graph: *captured is 1 or 0. */
coll_status coll_gpu_captured(int32_t device, void* stream, int32_t* captured);
/* What is enqueued on `stream` from now on comes after what is on `other` now. */
coll_status coll_gpu_follow(int32_t device, void* stream, void* other);
/* Waits until the stream is done; COLL_TIMEOUT where a collective gave up on the GPU. Where the
 * communicator has failed what waits there for other processes is ended. */
coll_status coll_gpu_wait(coll_comm* comm, int32_t device, void* stream);

#ifdef __cplusplus
}
#endif
#endif

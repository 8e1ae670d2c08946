/* SPDX-License-Identifier: Apache-2.0
 *
 * Sparse vectors in the memory of a GPU: the part of the public C interface that collectives.h
 * includes. Values are float32, float64, float16 or bfloat16, vectors have 2^31 elements at most,
 * indices 4 or 8 bytes. */
#ifndef COLLECTIVES_GPU_SPARSE_H
#define COLLECTIVES_GPU_SPARSE_H

#include "collectives.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The k of n elements that are largest in magnitude, as coll_top_k() selects them: NaNs are the
 * largest of all, of equal ones the first are taken, indices ascend. With a residual x is added to
 * it first (float64 of float64, else float32), it is what is selected from, and what is not sent
 * stays in it (error feedback). Set `size` to sizeof(coll_gpu_selection). */
typedef struct coll_gpu_selection {
  size_t size;
  int32_t dtype;
  uint32_t index_bytes;
  size_t n, k;
  const void* x;
  void* residual; /* NULL: none */
  void* indices;  /* room for k */
  void* values;
  void* room; /* memory of the GPU, of as many bytes as coll_gpu_top_k_room() says */
} coll_gpu_selection;

/* How much memory a selection needs while it runs; its pointers are not looked at, but whether
 * there is a residual. */
coll_status coll_gpu_top_k_room(int32_t device, const coll_gpu_selection* selection, size_t* bytes);
/* Enqueues the selection. */
coll_status coll_gpu_top_k(int32_t device, const coll_gpu_selection* selection, void* stream);

/* The sum, or the average (COLL_AVG), of the ranks' sparse vectors. Indices ascend. Set `size` to
 * sizeof(coll_gpu_sparse). */
typedef struct coll_gpu_sparse {
  size_t size;
  int32_t dtype, op;
  uint32_t index_bytes;
  size_t entries, length;
  const void* indices;
  const void* values;
  void* output;       /* `length` values; NULL on all ranks: a sparse sum, to be taken */
  double timeout;     /* seconds; 0: that of the communicator */
  const char* agreed; /* words that all ranks must say alike; NULL: none */
  /* NULL, or what is selected into `indices` and `values` once all ranks have agreed on the call:
   * so one that ranks do not agree on leaves the residual as it was. */
  const coll_gpu_selection* selection;
} coll_gpu_sparse;

/* Makes the call, as coll_gpu_run(): it is enqueued when this returns. An element is the sum of
 * what ranks have there, in their order, in float32 or wider, rounded once. */
coll_status coll_gpu_sparse_run(coll_comm* comm, const coll_gpu_sparse* call, int32_t device,
                                void* stream);
/* Waits until the stream is done, and says how many elements of the last call's sum are not zero
 * (of a dense outcome: 0). COLL_INVALID_ARGUMENT on all ranks where indices of one did not ascend,
 * or were not below the length; then nothing was written. */
coll_status coll_gpu_sparse_entries(coll_comm* comm, int32_t device, void* stream, size_t* entries);
/* Enqueues the copy of a sparse sum to arrays of the caller, by ascending index. */
coll_status coll_gpu_sparse_take(coll_comm* comm, int32_t device, void* stream,
                                 uint32_t index_bytes, void* indices, void* values);

#ifdef __cplusplus
}
#endif
#endif

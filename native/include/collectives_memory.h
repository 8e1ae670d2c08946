/* SPDX-License-Identifier: Apache-2.0
 *
 * Symmetric memory: the part of the public C interface that collectives.h includes.
 *
 * Arrays in memory that all ranks can reach are read and written by peers directly, without a copy
 * through the stage. Every rank makes its own, of whatever size and when it likes; a call may get
 * some arrays in such memory and others not, on each rank as it wants. Between machines it is
 * ordinary memory. */
#ifndef COLLECTIVES_MEMORY_H
#define COLLECTIVES_MEMORY_H

#include "collectives.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct coll_memory coll_memory;

/* Local. `*data` is aligned to a page and not cleared. It may be used until coll_memory_free(),
 * also after its communicator was closed, and with every communicator of the same job. */
coll_status coll_memory_new(coll_comm* comm, size_t bytes, coll_memory** memory, void** data);
/* NULL is allowed. Not while a call uses it. */
void coll_memory_free(coll_memory* memory);
/* 1 where all ranks can reach these bytes: those of coll_memory_new(); of threads, any. */
int32_t coll_is_symmetric(const coll_comm* comm, const void* data, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif

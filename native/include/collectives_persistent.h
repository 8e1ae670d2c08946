/* SPDX-License-Identifier: Apache-2.0
 *
 * Persistent calls: the part of the public C interface that collectives.h includes.
 *
 * A persistent call is checked, planned and bound to its buffers once, and begun as often as
 * wanted. Like any collective it is begun by all ranks in the same order, among their other calls;
 * a rank may make it persistent and another not. */
#ifndef COLLECTIVES_PERSISTENT_H
#define COLLECTIVES_PERSISTENT_H

#include "collectives.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct coll_persistent coll_persistent;

/* Local. The buffers must stay where they are until coll_persistent_free(). */
coll_status coll_persistent_new(coll_comm* comm, const coll_call* call,
                                coll_persistent** persistent);
/* Begins and returns: its buffers are the library's until coll_finish() has returned COLL_OK. One
 * call of a communicator is in progress at a time. */
coll_status coll_start(coll_persistent* persistent);
/* Waits until it is done. COLL_IN_PROGRESS (of an interruptible communicator): call again. */
coll_status coll_finish(coll_persistent* persistent);
/* Both at once. COLL_IN_PROGRESS: go on with coll_resume(). */
coll_status coll_run_persistent(coll_persistent* persistent);
/* Before its communicator is closed. NULL is allowed. */
coll_status coll_persistent_free(coll_persistent* persistent);

#ifdef __cplusplus
}
#endif
#endif

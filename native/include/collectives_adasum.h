/* SPDX-License-Identifier: Apache-2.0
 *
 * Adasum: the part of the public C interface that collectives.h includes. */
#ifndef COLLECTIVES_ADASUM_H
#define COLLECTIVES_ADASUM_H

#include "collectives.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Combines vectors of floating-point numbers two by two (Maleki et al., "Scaling Distributed
 * Training with Adaptive Summation", MLSys'21): orthogonal ones are added, equal ones averaged.
 * Every rank gets the same bits. It is no sum: the result depends on the order of the ranks. Narrow
 * floats are combined in float32 and rounded once. `output` may be `input`. COLL_IN_PROGRESS: go on
 * with coll_resume(). timeout: seconds for all of it; 0: the communicator's. */
coll_status coll_adasum(coll_comm* comm, const void* input, void* output, size_t count,
                        int32_t dtype, double timeout);

#ifdef __cplusplus
}
#endif
#endif

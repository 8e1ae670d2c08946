/* SPDX-License-Identifier: Apache-2.0
 *
 * Exact sums of several contributions of each rank: the part of the public C interface that
 * collectives.h includes. What is added into limbs on each rank, summed as COLL_INT64 by any
 * algorithm, and then rounded does not depend on who handed in what. A sum of one contribution for
 * each rank needs none of this: it is a call with COLL_REPRODUCIBLE_ANY_P. */
#ifndef COLLECTIVES_EXACT_H
#define COLLECTIVES_EXACT_H

#include "collectives.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How many int64_t stand for one element of a floating-point or complex dtype among so many ranks;
 * COLL_UNSUPPORTED for another dtype. Zeros stand for 0. */
coll_status coll_exact_limbs(int32_t dtype, int32_t ranks, size_t* limbs);
/* limbs := limbs + array, for `count` elements. At most 2^31 times. */
coll_status coll_exact_add(int32_t dtype, int32_t ranks, int64_t* limbs, const void* array,
                           size_t count);
/* array := limbs / divisor for `count` elements, rounded once to the nearest, ties to even. */
coll_status coll_exact_round(int32_t dtype, int32_t ranks, void* array, const int64_t* limbs,
                             uint64_t divisor, size_t count);

#ifdef __cplusplus
}
#endif
#endif

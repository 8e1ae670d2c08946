/* SPDX-License-Identifier: Apache-2.0
 * The arrays and lengths of a collective of unequal parts, where both are plain. Only who holds the
 * lock of the interpreter calls these. */
#ifndef COLLECTIVES_PLAIN_PARTS_H
#define COLLECTIVES_PLAIN_PARTS_H

#include <Python.h>
#include <stddef.h>
#include <stdint.h>

#include "bindings/plain_arrays.h"
#include "collectives.h"

enum { kMostLengths = 256 };

/* Which rank calls, of how many. */
typedef struct plain_place {
  npy_intp rank, ranks;
} plain_place;

/* Reads the lengths of all parts along the first axis: those of each rank, of alltoall the table of
 * what each sends to each. Whether they are a list or tuple, or an array of int64, of lengths. */
int plain_lengths(int32_t kind, PyObject* counts, npy_intp ranks, size_t* lengths);
/* Rows that this rank hands in, and that it gets; of scatter and gather, where it is the root. */
size_t rows_given(int32_t kind, const size_t* lengths, plain_place place);
size_t rows_got(int32_t kind, const size_t* lengths, plain_place place);
/* Completes the call with arrays that have these lengths, None where a rank hands nothing in or
 * gets nothing, and turns lengths to elements. Whether both are plain and fit. */
int take_parts(coll_call* call, PyObject* x, PyObject* out, plain_place place, size_t* lengths);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * The short way of an allreduce of a sparse vector of plain NumPy arrays. */
#ifndef COLLECTIVES_PLAIN_SPARSE_H
#define COLLECTIVES_PLAIN_SPARSE_H

#include <Python.h>

/* (address of the coll_door, address of a coll_sparse_call without arrays, indices, values, length,
 * coll_dtype of the values, or kMissed: as the array says) -> a tuple of new indices, int32, and
 * values; or all values, a new array; or the coll_status of what failed; or kMissed. */
PyObject* run_plain_sparse(PyObject* module, PyObject* const* args, Py_ssize_t n);

/* Gets what makes NumPy's arrays. Where that does not fit, nothing goes this way; 0: an exception.
 */
int know_making_arrays(void);

#endif

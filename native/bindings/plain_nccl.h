/* SPDX-License-Identifier: Apache-2.0
 * The short way of collectives.nccl for NumPy's arrays, where a libnccl takes those. */
#ifndef COLLECTIVES_PLAIN_NCCL_H
#define COLLECTIVES_PLAIN_NCCL_H

#include <Python.h>

/* (address of ncclAllReduce, communicator, x, out or None, number of the operation) -> the result,
 * or kMissed. On stream NULL. */
PyObject* run_nccl_allreduce(PyObject* module, PyObject* const* args, Py_ssize_t n);

#endif

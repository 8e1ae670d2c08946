/* SPDX-License-Identifier: Apache-2.0
 * The short way of a plan of sparse sums, of plain NumPy arrays. */
#ifndef COLLECTIVES_PLAIN_PLAN_H
#define COLLECTIVES_PLAIN_PLAN_H

#include <Python.h>

/* (address of the coll_door, address of the coll_sparse_plan, values, out, how many values are
 * given, and asked for) -> a coll_status, or kMissed. The operation is a sum. */
PyObject* run_plain_plan(PyObject* module, PyObject* const* args, Py_ssize_t n);

#endif

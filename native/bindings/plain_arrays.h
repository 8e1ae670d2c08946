/* SPDX-License-Identifier: Apache-2.0
 * NumPy's arrays as the short ways look at them: by their own fields, since the buffer protocol
 * takes as long as a whole call. Only who holds the lock of the interpreter calls these. */
#ifndef COLLECTIVES_PLAIN_ARRAYS_H
#define COLLECTIVES_PLAIN_ARRAYS_H

#include <Python.h>
#include <stddef.h>
#include <stdint.h>

#define NPY_TARGET_VERSION NPY_1_22_API_VERSION
#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#include <numpy/ndarraytypes.h>

/* What a short way returns instead of a status where it has done nothing. */
enum { kMissed = -1 };

/* Meets NumPy; 0 where its arrays do not lie in memory as they did when this was compiled. */
int know_arrays(void);
/* An array of no other class that lies in one piece, aligned; NULL anything else. */
PyArrayObject* plain_array(PyObject* object, int written);
/* A coll_dtype, or kMissed. */
int32_t plain_dtype(PyArrayObject* array);
/* (number that NumPy gave to a dtype of another package, its coll_dtype) -> None. */
PyObject* meet_dtype(PyObject* module, PyObject* const* args, Py_ssize_t n);
size_t plain_elements(PyArrayObject* array);
/* Whether the axes of `one` from `skip` on are as long as those of `other`. */
int plain_same_axes(PyArrayObject* one, int skip, PyArrayObject* other, int other_skip);

#endif

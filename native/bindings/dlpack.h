/* SPDX-License-Identifier: Apache-2.0
 * Capsules of DLPack for memory of a GPU that a Python object owns. */
#ifndef COLLECTIVES_DLPACK_H
#define COLLECTIVES_DLPACK_H

#include <Python.h>

/* (owner, address, GPU, kind of the elements, their bits, shape, whether of version 1) -> a capsule
 * that keeps the owner alive until who took it is done with it. Elements lie one after the other.
 */
PyObject* dlpack_capsule(PyObject* module, PyObject* const* args, Py_ssize_t n);

#endif

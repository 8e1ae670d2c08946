/* SPDX-License-Identifier: Apache-2.0
 * collectives._native.PlainPersistent: what a persistent call is begun by. */
#ifndef COLLECTIVES_PLAIN_PERSISTENT_H
#define COLLECTIVES_PLAIN_PERSISTENT_H

#include <Python.h>

/* Adds the type to a module; -1 with an exception. */
int add_plain_persistent(PyObject* module);

#endif

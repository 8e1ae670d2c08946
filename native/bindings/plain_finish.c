// SPDX-License-Identifier: Apache-2.0
#include "bindings/plain_finish.h"

// A signal handler has raised: the peers must not wait for this rank, nor may it write any more.
static void break_off(coll_comm* comm, const char* call) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject* name = PyType_GetName((PyTypeObject*)type);
  PyObject* reason =
      name == NULL ? NULL : PyUnicode_FromFormat("it was interrupted in %s by %U", call, name);
  const char* text = reason == NULL ? NULL : PyUnicode_AsUTF8AndSize(reason, NULL);
  coll_abort(comm, text == NULL ? "it was interrupted" : text);
  Py_XDECREF(reason);
  Py_XDECREF(name);
  PyErr_Restore(type, value, trace);
}

coll_status plain_finish(coll_door* door, coll_comm* comm, const char* name, coll_status status) {
  while (status == COLL_IN_PROGRESS) {
    if (PyErr_CheckSignals() != 0) {
      if (door->comm != NULL) break_off(comm, name);
      break;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = coll_resume(comm);
    Py_END_ALLOW_THREADS;
  }
  door->in_call = 0;
  return status;
}

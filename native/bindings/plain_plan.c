// SPDX-License-Identifier: Apache-2.0
#include "bindings/plain_plan.h"

#include "bindings/clock.h"
#include "bindings/door.h"
#include "bindings/plain_arrays.h"
#include "bindings/plain_finish.h"

static coll_status make_plan_call(coll_door* door, coll_sparse_plan* plan, PyArrayObject* values,
                                  PyArrayObject* out, int32_t dtype) {
  coll_comm* comm = door->comm;
  const void* given = PyArray_DATA(values);
  void* sums = PyArray_DATA(out);
  coll_plan_taken* taken = &door->plan_taken;
  coll_status status;
  door->in_call = 1;
  Py_BEGIN_ALLOW_THREADS;
  taken->seconds = -seconds_now();
  status = coll_sparse_plan_reduce(comm, plan, given, sums, dtype, COLL_SUM, 0);
  Py_END_ALLOW_THREADS;
  status = plain_finish(door, comm, "plan.reduce", status);
  if (status != COLL_OK) return status;
  taken->seconds += seconds_now();
  taken->sequence = coll_sequence(comm);
  coll_sparse_plan_how(plan, &taken->way);
  return coll_sparse_plan_sent(plan, &taken->bytes, &taken->messages, &taken->rounds);
}

PyObject* run_plain_plan(PyObject* module, PyObject* const* args, Py_ssize_t n) {
  (void)module;
  if (n != 6) return PyErr_Format(PyExc_TypeError, "run_plain_plan takes 6 arguments, not %zd", n);
  coll_door* door = (coll_door*)PyLong_AsVoidPtr(args[0]);
  coll_sparse_plan* plan = (coll_sparse_plan*)PyLong_AsVoidPtr(args[1]);
  const size_t given = PyLong_AsSize_t(args[4]), asked = PyLong_AsSize_t(args[5]);
  if (PyErr_Occurred() != NULL) return NULL;
  PyArrayObject *values = plain_array(args[2], 0), *out = plain_array(args[3], 1);
  if (door == NULL || plan == NULL || door->comm == NULL || door->in_call || values == NULL ||
      out == NULL || plain_elements(values) != given || plain_elements(out) != asked) {
    return PyLong_FromLong(kMissed);
  }
  const int32_t dtype = plain_dtype(values);
  if (dtype == kMissed || plain_dtype(out) != dtype) return PyLong_FromLong(kMissed);
  const coll_status status = make_plan_call(door, plan, values, out, dtype);
  return status == COLL_IN_PROGRESS ? NULL : PyLong_FromLong(status);
}

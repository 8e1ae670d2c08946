// SPDX-License-Identifier: Apache-2.0
#include "bindings/plain_nccl.h"

#include "bindings/plain_arrays.h"
#include "collectives.h"

typedef int (*all_reduce)(const void*, void*, size_t, int, int, void*, void*);

// NCCL's number of a coll_dtype, which is never changed; kMissed: it has none.
static int number_of(int32_t dtype) {
  switch (dtype) {
    case COLL_INT8:
      return 0;
    case COLL_UINT8:
      return 1;
    case COLL_INT32:
      return 2;
    case COLL_UINT32:
      return 3;
    case COLL_INT64:
      return 4;
    case COLL_UINT64:
      return 5;
    case COLL_FLOAT16:
      return 6;
    case COLL_FLOAT32:
      return 7;
    case COLL_FLOAT64:
      return 8;
    default:
      return kMissed;
  }
}

// Whether two arrays are as long, and one or apart.
static int fit(PyArrayObject* in, PyArrayObject* out, int number) {
  static const size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8};
  if (in == out) return 1;
  const size_t n = plain_elements(in);
  if (plain_elements(out) != n) return 0;
  const char *from = PyArray_BYTES(in), *to = PyArray_BYTES(out);
  const size_t bytes = n * kBytes[number];
  return from == to || from + bytes <= to || to + bytes <= from;
}

PyObject* run_nccl_allreduce(PyObject* module, PyObject* const* args, Py_ssize_t n) {
  (void)module;
  if (n != 5) return PyErr_Format(PyExc_TypeError, "it takes 5 arguments, not %zd", n);
  const all_reduce call = (all_reduce)(uintptr_t)PyLong_AsVoidPtr(args[0]);
  void* comm = PyLong_AsVoidPtr(args[1]);
  const int op = (int)PyLong_AsLong(args[4]);
  if (PyErr_Occurred() != NULL) return NULL;
  const int in_place = args[3] == Py_None;
  PyArrayObject* in = plain_array(args[2], in_place);
  PyArrayObject* out = in_place ? in : plain_array(args[3], 1);
  if (call == NULL || in == NULL || out == NULL) return PyLong_FromLong(kMissed);
  const int dtype = number_of(plain_dtype(in));
  if (dtype == kMissed || plain_dtype(out) != plain_dtype(in) || !fit(in, out, dtype)) {
    return PyLong_FromLong(kMissed);
  }
  int result;
  Py_BEGIN_ALLOW_THREADS;
  result = call(PyArray_DATA(in), PyArray_DATA(out), plain_elements(in), dtype, op, comm, NULL);
  Py_END_ALLOW_THREADS;
  return PyLong_FromLong(result);
}

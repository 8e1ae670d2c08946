// SPDX-License-Identifier: Apache-2.0
// The short way of a collective on plain NumPy arrays: collectives._native.run_plain().
//
// A small collective costs less than what Python needs to look at two arrays, and cffi to turn five
// arguments. So this one function is written by hand: it asks the buffer protocol, which refuses
// what is strided, or read-only and to be written, looks whether dtypes and shapes are those that
// the collective takes, and makes the call. What it does not know it does not judge: then nothing
// was done, and the long way through collectives/arrays.py and checks.py serves the call, or says
// what is wrong.
#include <Python.h>
#include <string.h>

#include "collectives.h"

// What run_plain() returns instead of a coll_status where it has done nothing.
enum { kMissed = -1 };

static int32_t dtype_of_letter(char letter) {
  switch (letter) {
    case '?':
      return COLL_BOOL;
    case 'b':
      return COLL_INT8;
    case 'B':
      return COLL_UINT8;
    case 'h':
      return COLL_INT16;
    case 'H':
      return COLL_UINT16;
    case 'i':
      return COLL_INT32;
    case 'I':
      return COLL_UINT32;
    case 'l':
      return sizeof(long) == 8 ? COLL_INT64 : COLL_INT32;
    case 'L':
      return sizeof(long) == 8 ? COLL_UINT64 : COLL_UINT32;
    case 'q':
      return COLL_INT64;
    case 'Q':
      return COLL_UINT64;
    case 'e':
      return COLL_FLOAT16;
    case 'f':
      return COLL_FLOAT32;
    case 'd':
      return COLL_FLOAT64;
    default:
      return kMissed;
  }
}

// "T{f:value:i:index:}", whatever the two fields are called. Padding would stand between.
static int32_t dtype_of_pair(const char* format) {
  if (format[2] == '\0' || format[3] != ':') return kMissed;
  const char* second = strchr(format + 4, ':');
  if (second == NULL || second[1] == '\0' || second[2] != ':') return kMissed;
  const char* end = strchr(second + 3, ':');
  if (end == NULL || strcmp(end, ":}") != 0) return kMissed;
  const int32_t value = dtype_of_letter(format[2]), index = dtype_of_letter(second[1]);
  if (index == COLL_INT32 && value == COLL_FLOAT32) return COLL_FLOAT32_INT32;
  if (index == COLL_INT32 && value == COLL_INT32) return COLL_INT32_INT32;
  if (index == COLL_INT64 && value == COLL_FLOAT64) return COLL_FLOAT64_INT64;
  if (index == COLL_INT64 && value == COLL_INT64) return COLL_INT64_INT64;
  return kMissed;
}

// Of formats as NumPy writes them. Another order of bytes, or an address that is not aligned, is
// one more letter in front.
static int32_t dtype_of(const Py_buffer* array) {
  const char* format = array->format;
  if (format == NULL || format[0] == '\0') return kMissed;
  if (format[1] == '\0') return dtype_of_letter(format[0]);
  if (strcmp(format, "Zf") == 0) return COLL_COMPLEX64;
  if (strcmp(format, "Zd") == 0) return COLL_COMPLEX128;
  return strncmp(format, "T{", 2) == 0 ? dtype_of_pair(format) : kMissed;
}

// Whether the axes of `one` from `skip` on are as long as those of `other`.
static int same_axes(const Py_buffer* one, int skip, const Py_buffer* other, int other_skip) {
  const int axes = one->ndim - skip;
  if (axes != other->ndim - other_skip) return 0;
  for (int i = 0; i < axes; ++i) {
    if (one->shape[skip + i] != other->shape[other_skip + i]) return 0;
  }
  return 1;
}

// Whether `whole` is p arrays like `part`, joined along the first axis or stacked.
static int joins(const Py_buffer* whole, const Py_buffer* part, Py_ssize_t p) {
  if (whole->ndim == 0) return 0;
  if (whole->shape[0] == p && same_axes(whole, 1, part, 0)) return 1;
  return part->ndim > 0 && whole->shape[0] == p * part->shape[0] && same_axes(whole, 1, part, 1);
}

static int shapes_fit(int32_t kind, const Py_buffer* in, const Py_buffer* out, Py_ssize_t p) {
  switch (kind) {
    case COLL_ALLGATHER:
    case COLL_GATHER:
      return joins(out, in, p);
    case COLL_REDUCE_SCATTER:
    case COLL_SCATTER:
      return joins(in, out, p);
    case COLL_ALLTOALL:
      return in->ndim > 0 && in->shape[0] % p == 0 && same_axes(in, 0, out, 0);
    default:
      return same_axes(in, 0, out, 0);
  }
}

static int borrow(PyObject* array, int writable, Py_buffer* view) {
  const int flags = PyBUF_ND | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(array, view, flags) == 0) return 1;
  PyErr_Clear();
  return 0;
}

// Completes the call with what a rank hands in and gets, one of which may be None: `out` of an
// input that is overwritten, or of a rank that gets nothing; `x` of one that hands nothing in.
static int take(coll_call* call, PyObject* x, PyObject* out, Py_ssize_t p, int gets,
                Py_buffer views[2]) {
  Py_buffer *in = &views[0], *result = &views[1];
  const int in_place = out == Py_None && gets;
  if (x != Py_None && !borrow(x, in_place, in)) return 0;
  if (out != Py_None) {
    if (x != Py_None && Py_TYPE(out) != Py_TYPE(x)) return 0;
    if (!borrow(out, 1, result)) return 0;
  } else if (in_place && !shapes_fit(call->kind, in, in, p)) {
    return 0;
  }
  if (in->obj != NULL && result->obj != NULL) {
    if (dtype_of(in) != dtype_of(result) || !shapes_fit(call->kind, in, result, p)) return 0;
  }
  // Of a scatter the count is one part.
  const Py_buffer* counted = result->obj != NULL && call->kind == COLL_SCATTER ? result : in;
  call->dtype = dtype_of(counted);
  if (call->dtype == kMissed) return 0;
  call->input = in->buf;
  call->output = in_place ? in->buf : result->buf;
  call->count = (size_t)(counted->len / counted->itemsize);
  return 1;
}

// (address of the coll_comm, address of a coll_call without arrays and root, x, out, root) -> a
// coll_status, or kMissed. Arrays are of the class numpy.ndarray, or None.
static PyObject* run_plain(PyObject* module, PyObject* const* args, Py_ssize_t n) {
  (void)module;
  if (n != 5) return PyErr_Format(PyExc_TypeError, "run_plain takes 5 arguments, not %zd", n);
  coll_comm* comm = (coll_comm*)PyLong_AsVoidPtr(args[0]);
  const coll_call* prepared = (const coll_call*)PyLong_AsVoidPtr(args[1]);
  if (PyErr_Occurred() != NULL) return NULL;
  // True would be taken for rank 1.
  if (comm == NULL || prepared == NULL || !PyLong_CheckExact(args[4])) {
    return PyLong_FromLong(kMissed);
  }
  int overflow = 0;
  const long root = PyLong_AsLongAndOverflow(args[4], &overflow);
  const int32_t p = coll_ranks(comm);
  if (overflow != 0 || root < 0 || root >= p) return PyLong_FromLong(kMissed);

  coll_call call = *prepared;
  call.root = (int32_t)root;
  const int one_gets = call.kind == COLL_REDUCE || call.kind == COLL_GATHER;
  const int gets = !one_gets || coll_rank(comm) == call.root;
  Py_buffer views[2] = {{0}, {0}};
  long status = kMissed;
  if (call.kind == COLL_BARRIER || take(&call, args[2], args[3], p, gets, views)) {
    Py_BEGIN_ALLOW_THREADS;
    status = coll_run(comm, &call);
    Py_END_ALLOW_THREADS;
  }
  PyBuffer_Release(&views[0]);
  PyBuffer_Release(&views[1]);
  return PyLong_FromLong(status);
}

// Adds run_plain() to the module that cffi made. Called through cffi, so without the lock of the
// interpreter. Returns whether it is there.
int32_t install_plain_calls(void) {
  static PyMethodDef functions[] = {
      {"run_plain", (PyCFunction)(void (*)(void))run_plain, METH_FASTCALL, NULL},
      {NULL, NULL, 0, NULL},
  };
  const PyGILState_STATE state = PyGILState_Ensure();
  PyObject* module = PyImport_ImportModule("collectives._native");
  const int done = module != NULL && PyModule_AddFunctions(module, functions) == 0;
  Py_XDECREF(module);
  if (!done) PyErr_Clear();
  PyGILState_Release(state);
  return done;
}

// SPDX-License-Identifier: Apache-2.0
// The short ways of Python: collectives._native.run_plain(), a collective on plain NumPy arrays,
// and run_persistent().
//
// A small collective costs less than what Python needs to look at two arrays, and cffi to turn five
// arguments. So these functions are written by hand: run_plain() reads NumPy's own fields (the
// buffer protocol takes as long as the whole call), looks whether dtypes and shapes are those that
// the collective takes, and makes the call. What it does not know it does not judge: then nothing
// was done, and the long way through collectives/arrays.py and checks.py serves the call, or says
// what is wrong.
#include <Python.h>
#include <string.h>

#define NPY_TARGET_VERSION NPY_1_22_API_VERSION
#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#include <numpy/ndarraytypes.h>

#include "bindings/door.h"
#include "collectives.h"

// What both return instead of a coll_status where they have done nothing.
enum { kMissed = -1 };

static PyTypeObject* ndarray;  // kept for ever

static int32_t dtype_of_number(int number) {
  switch (number) {
    case NPY_BOOL:
      return COLL_BOOL;
    case NPY_BYTE:
      return COLL_INT8;
    case NPY_UBYTE:
      return COLL_UINT8;
    case NPY_SHORT:
      return COLL_INT16;
    case NPY_USHORT:
      return COLL_UINT16;
    case NPY_INT:
      return COLL_INT32;
    case NPY_UINT:
      return COLL_UINT32;
    case NPY_LONG:
      return sizeof(long) == 8 ? COLL_INT64 : COLL_INT32;
    case NPY_ULONG:
      return sizeof(long) == 8 ? COLL_UINT64 : COLL_UINT32;
    case NPY_LONGLONG:
      return COLL_INT64;
    case NPY_ULONGLONG:
      return COLL_UINT64;
    case NPY_HALF:
      return COLL_FLOAT16;
    case NPY_FLOAT:
      return COLL_FLOAT32;
    case NPY_DOUBLE:
      return COLL_FLOAT64;
    case NPY_CFLOAT:
      return COLL_COMPLEX64;
    case NPY_CDOUBLE:
      return COLL_COMPLEX128;
    default:
      return kMissed;
  }
}

static int32_t dtype_of_letter(char letter) {
  return letter == 'f'   ? COLL_FLOAT32
         : letter == 'd' ? COLL_FLOAT64
         : letter == 'i' ? COLL_INT32
         : letter == 'l' ? COLL_INT64
                         : kMissed;
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

// Of a value and its index; other structures are not plain.
static int32_t dtype_of_structure(PyObject* array) {
  Py_buffer view;
  if (PyObject_GetBuffer(array, &view, PyBUF_ND | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    return kMissed;
  }
  const int pair = view.format != NULL && strncmp(view.format, "T{", 2) == 0;
  const int32_t dtype = pair ? dtype_of_pair(view.format) : kMissed;
  PyBuffer_Release(&view);
  return dtype;
}

static int32_t dtype_of(PyArrayObject* array) {
  const PyArray_Descr* dtype = PyArray_DESCR(array);
  if (dtype->type_num == NPY_VOID) return dtype_of_structure((PyObject*)array);
  return PyArray_ISNBO(dtype->byteorder) ? dtype_of_number(dtype->type_num) : kMissed;
}

// Whether the axes of `one` from `skip` on are as long as those of `other`.
static int same_axes(PyArrayObject* one, int skip, PyArrayObject* other, int other_skip) {
  const int axes = PyArray_NDIM(one) - skip;
  if (axes != PyArray_NDIM(other) - other_skip) return 0;
  for (int i = 0; i < axes; ++i) {
    if (PyArray_DIM(one, skip + i) != PyArray_DIM(other, other_skip + i)) return 0;
  }
  return 1;
}

// Whether `whole` is p arrays like `part`, joined along the first axis or stacked.
static int joins(PyArrayObject* whole, PyArrayObject* part, npy_intp p) {
  if (PyArray_NDIM(whole) == 0) return 0;
  const npy_intp rows = PyArray_DIM(whole, 0);
  if (rows == p && same_axes(whole, 1, part, 0)) return 1;
  return PyArray_NDIM(part) > 0 && rows == p * PyArray_DIM(part, 0) && same_axes(whole, 1, part, 1);
}

static int shapes_fit(int32_t kind, PyArrayObject* in, PyArrayObject* out, npy_intp p) {
  switch (kind) {
    case COLL_ALLGATHER:
    case COLL_GATHER:
      return joins(out, in, p);
    case COLL_REDUCE_SCATTER:
    case COLL_SCATTER:
      return joins(in, out, p);
    case COLL_ALLTOALL:
      return PyArray_NDIM(in) > 0 && PyArray_DIM(in, 0) % p == 0 && same_axes(in, 0, out, 0);
    default:
      return same_axes(in, 0, out, 0);
  }
}

// An array of no other class that lies in one piece, aligned; NULL anything else.
static PyArrayObject* plain(PyObject* object, int written) {
  if (Py_TYPE(object) != ndarray) return NULL;
  PyArrayObject* array = (PyArrayObject*)object;
  const int wanted =
      NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | (written ? NPY_ARRAY_WRITEABLE : 0);
  return PyArray_CHKFLAGS(array, wanted) ? array : NULL;
}

static size_t elements(PyArrayObject* array) {
  size_t n = 1;
  for (int i = 0; i < PyArray_NDIM(array); ++i) n *= (size_t)PyArray_DIM(array, i);
  return n;
}

// Completes the call with what a rank hands in and gets, one of which may be None: `out` of an
// input that is overwritten, or of a rank that gets nothing; `x` of one that hands nothing in.
static int take(coll_call* call, PyObject* x, PyObject* out, npy_intp p, int gets) {
  const int in_place = out == Py_None && gets;
  PyArrayObject *in = NULL, *result = NULL;
  if (x != Py_None && (in = plain(x, in_place)) == NULL) return 0;
  if (out != Py_None && (result = plain(out, 1)) == NULL) return 0;
  if (in == NULL && (result == NULL || in_place)) return 0;
  if (in_place && !shapes_fit(call->kind, in, in, p)) return 0;
  if (in != NULL && result != NULL &&
      (dtype_of(in) != dtype_of(result) || !shapes_fit(call->kind, in, result, p))) {
    return 0;
  }
  // Of a scatter the count is one part.
  PyArrayObject* counted = in == NULL || (result && call->kind == COLL_SCATTER) ? result : in;
  call->dtype = dtype_of(counted);
  if (call->dtype == kMissed) return 0;
  call->input = in != NULL ? PyArray_DATA(in) : NULL;
  call->output = in_place ? PyArray_DATA(in) : result != NULL ? PyArray_DATA(result) : NULL;
  call->count = elements(counted);
  return 1;
}

// A signal handler has raised: the peers must not wait for this rank, nor may it write any more.
static void break_off(coll_comm* comm, int32_t kind) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject* name = PyType_GetName((PyTypeObject*)type);
  PyObject* reason = name == NULL ? NULL
                                  : PyUnicode_FromFormat("it was interrupted in %s by %U",
                                                         coll_kind_name(kind), name);
  const char* text = reason == NULL ? NULL : PyUnicode_AsUTF8AndSize(reason, NULL);
  coll_abort(comm, text == NULL ? "it was interrupted" : text);
  Py_XDECREF(reason);
  Py_XDECREF(name);
  PyErr_Restore(type, value, trace);
}

// Goes on with a call that has begun. It comes up for air every 50 ms, so that Python runs the
// signal handlers; one of them may close the communicator, which the call then says.
static PyObject* finish(coll_door* door, coll_comm* comm, int32_t kind, coll_status status) {
  while (status == COLL_IN_PROGRESS) {
    if (PyErr_CheckSignals() != 0) {
      if (door->comm != NULL) break_off(comm, kind);
      door->in_call = 0;
      return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = coll_resume(comm);
    Py_END_ALLOW_THREADS;
  }
  door->in_call = 0;
  return PyLong_FromLong(status);
}

static coll_door* door_of(PyObject* address) { return (coll_door*)PyLong_AsVoidPtr(address); }

// (address of the coll_door, address of a coll_call without arrays and root, x, out, root) -> a
// coll_status, or kMissed. What is no plain array or None is missed.
static PyObject* run_plain(PyObject* module, PyObject* const* args, Py_ssize_t n) {
  (void)module;
  if (n != 5) return PyErr_Format(PyExc_TypeError, "run_plain takes 5 arguments, not %zd", n);
  coll_door* door = door_of(args[0]);
  const coll_call* prepared = (const coll_call*)PyLong_AsVoidPtr(args[1]);
  if (PyErr_Occurred() != NULL) return NULL;
  // True would be taken for rank 1.
  if (prepared == NULL || door->comm == NULL || door->in_call || !PyLong_CheckExact(args[4])) {
    return PyLong_FromLong(kMissed);
  }
  coll_comm* comm = door->comm;
  int overflow = 0;
  const long root = PyLong_AsLongAndOverflow(args[4], &overflow);
  const int32_t p = coll_ranks(comm);
  if (overflow != 0 || root < 0 || root >= p) return PyLong_FromLong(kMissed);

  coll_call call = *prepared;
  call.root = (int32_t)root;
  const int one_gets = call.kind == COLL_REDUCE || call.kind == COLL_GATHER;
  const int gets = !one_gets || coll_rank(comm) == call.root;
  if (call.kind != COLL_BARRIER && !take(&call, args[2], args[3], p, gets)) {
    return PyLong_FromLong(kMissed);
  }
  coll_status status;
  door->in_call = 1;
  Py_BEGIN_ALLOW_THREADS;
  status = coll_run(comm, &call);
  Py_END_ALLOW_THREADS;
  return finish(door, comm, call.kind, status);
}

// (address of the coll_door, address of the coll_persistent, its kind) -> as run_plain().
static PyObject* run_persistent(PyObject* module, PyObject* const* args, Py_ssize_t n) {
  (void)module;
  if (n != 3) return PyErr_Format(PyExc_TypeError, "run_persistent takes 3 arguments, not %zd", n);
  coll_door* door = door_of(args[0]);
  coll_persistent* persistent = (coll_persistent*)PyLong_AsVoidPtr(args[1]);
  const long kind = PyLong_AsLong(args[2]);
  if (PyErr_Occurred() != NULL) return NULL;
  if (persistent == NULL || door->comm == NULL || door->in_call) return PyLong_FromLong(kMissed);
  coll_comm* comm = door->comm;
  coll_status status;
  door->in_call = 1;
  Py_BEGIN_ALLOW_THREADS;
  status = coll_run_persistent(persistent);
  Py_END_ALLOW_THREADS;
  return finish(door, comm, (int32_t)kind, status);
}

// The class numpy.ndarray; NULL where it does not lie in memory as the headers said that this file
// was compiled with.
static PyTypeObject* class_of_arrays(void) {
  PyObject* numpy = PyImport_ImportModule("numpy");
  PyObject* class = numpy == NULL ? NULL : PyObject_GetAttrString(numpy, "ndarray");
  PyObject* array = class == NULL ? NULL : PyObject_CallFunction(class, "((ii)s)", 2, 3, "f4");
  PyArrayObject* seen = (PyArrayObject*)array;
  const int known = array != NULL && PyArray_NDIM(seen) == 2 && PyArray_DIM(seen, 0) == 2 &&
                    PyArray_DIM(seen, 1) == 3 && dtype_of(seen) == COLL_FLOAT32;
  Py_XDECREF(array);
  Py_XDECREF(numpy);
  if (known) return (PyTypeObject*)class;
  Py_XDECREF(class);
  return NULL;
}

// Adds the short ways to the module that cffi made. Called through cffi, so without the lock of the
// interpreter. Returns whether they are there.
int32_t install_plain_calls(void) {
  static PyMethodDef functions[] = {
      {"run_plain", (PyCFunction)(void (*)(void))run_plain, METH_FASTCALL, NULL},
      {"run_persistent", (PyCFunction)(void (*)(void))run_persistent, METH_FASTCALL, NULL},
      {NULL, NULL, 0, NULL},
  };
  const PyGILState_STATE state = PyGILState_Ensure();
  ndarray = class_of_arrays();
  PyObject* module = ndarray == NULL ? NULL : PyImport_ImportModule("collectives._native");
  const int done = module != NULL && PyModule_AddFunctions(module, functions) == 0;
  Py_XDECREF(module);
  if (!done) PyErr_Clear();
  PyGILState_Release(state);
  return done;
}

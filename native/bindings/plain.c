// SPDX-License-Identifier: Apache-2.0
// The short ways of Python: collectives._native.run_plain(), a collective on plain NumPy arrays.
//
// A small collective costs less than what Python needs to look at two arrays, and cffi to turn five
// arguments. So these functions are written by hand: run_plain() looks whether dtypes and shapes
// are those that the collective takes, and makes the call. What it does not know it does not judge:
// then nothing was done, and the long way through collectives/arrays.py and checks.py serves the
// call, or says what is wrong.
#include <sys/syscall.h>
#include <unistd.h>

#include "bindings/dlpack.h"
#include "bindings/door.h"
#include "bindings/plain_arrays.h"
#include "bindings/plain_finish.h"
#include "bindings/plain_nccl.h"
#include "bindings/plain_parts.h"
#include "bindings/plain_persistent.h"
#include "bindings/plain_plan.h"
#include "bindings/plain_sparse.h"
#include "collectives.h"

// Whether `whole` is p arrays like `part`, joined along the first axis or stacked.
static int joins(PyArrayObject* whole, PyArrayObject* part, npy_intp p) {
  if (PyArray_NDIM(whole) == 0) return 0;
  const npy_intp rows = PyArray_DIM(whole, 0);
  if (rows == p && plain_same_axes(whole, 1, part, 0)) return 1;
  return PyArray_NDIM(part) > 0 && rows == p * PyArray_DIM(part, 0) &&
         plain_same_axes(whole, 1, part, 1);
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
      return PyArray_NDIM(in) > 0 && PyArray_DIM(in, 0) % p == 0 && plain_same_axes(in, 0, out, 0);
    default:
      return plain_same_axes(in, 0, out, 0);
  }
}

// Completes the call with what a rank hands in and gets, one of which may be None: `out` of an
// input that is overwritten, or of a rank that gets nothing; `x` of one that hands nothing in.
static int take(coll_call* call, PyObject* x, PyObject* out, npy_intp p, int gets) {
  const int in_place = out == Py_None && gets;
  PyArrayObject *in = NULL, *result = NULL;
  if (x != Py_None && (in = plain_array(x, in_place)) == NULL) return 0;
  if (out != Py_None && (result = plain_array(out, 1)) == NULL) return 0;
  if (in == NULL && (result == NULL || in_place)) return 0;
  if (in_place && !shapes_fit(call->kind, in, in, p)) return 0;
  if (in != NULL && result != NULL &&
      (plain_dtype(in) != plain_dtype(result) || !shapes_fit(call->kind, in, result, p))) {
    return 0;
  }
  // Of a scatter the count is one part.
  PyArrayObject* counted = in == NULL || (result && call->kind == COLL_SCATTER) ? result : in;
  call->dtype = plain_dtype(counted);
  if (call->dtype == kMissed) return 0;
  call->input = in != NULL ? PyArray_DATA(in) : NULL;
  call->output = in_place ? PyArray_DATA(in) : result != NULL ? PyArray_DATA(result) : NULL;
  call->count = plain_elements(counted);
  return 1;
}

static PyObject* finished(coll_door* door, coll_comm* comm, int32_t kind, coll_status status) {
  status = plain_finish(door, comm, coll_kind_name(kind), status);
  return status == COLL_IN_PROGRESS ? NULL : PyLong_FromLong(status);
}

static PyObject* missed(void) { return PyLong_FromLong(kMissed); }

// Makes a call that is complete.
static PyObject* make(coll_door* door, const coll_call* call) {
  coll_comm* comm = door->comm;
  coll_status status;
  door->in_call = 1;
  Py_BEGIN_ALLOW_THREADS;
  status = coll_run(comm, call);
  Py_END_ALLOW_THREADS;
  return finished(door, comm, call->kind, status);
}

static coll_door* door_of(PyObject* address) { return (coll_door*)PyLong_AsVoidPtr(address); }

// Begins a call as it was prepared for its operation; 0 where the long way must look at it.
static int begin(coll_call* call, const coll_door* door, PyObject* prepared, PyObject* root) {
  const coll_call* made = (const coll_call*)PyLong_AsVoidPtr(prepared);
  // True would be taken for rank 1.
  if (made == NULL || door->comm == NULL || door->in_call || !PyLong_CheckExact(root)) return 0;
  int overflow = 0;
  const long rank = PyLong_AsLongAndOverflow(root, &overflow);
  if (overflow != 0 || rank < 0 || rank >= coll_ranks(door->comm)) return 0;
  *call = *made;
  call->root = (int32_t)rank;
  return 1;
}

// (address of the coll_door, address of a coll_call without arrays and root, x, out, root) -> a
// coll_status, or kMissed. What is no plain array or None is missed.
static PyObject* run_plain(PyObject* module, PyObject* const* args, Py_ssize_t n) {
  (void)module;
  if (n != 5) return PyErr_Format(PyExc_TypeError, "run_plain takes 5 arguments, not %zd", n);
  coll_door* door = door_of(args[0]);
  coll_call call;
  if (PyErr_Occurred() != NULL) return NULL;
  if (!begin(&call, door, args[1], args[4])) return PyErr_Occurred() ? NULL : missed();
  const int one_gets = call.kind == COLL_REDUCE || call.kind == COLL_GATHER;
  const int gets = !one_gets || coll_rank(door->comm) == call.root;
  if (call.kind != COLL_BARRIER && !take(&call, args[2], args[3], coll_ranks(door->comm), gets)) {
    return missed();
  }
  return make(door, &call);
}

// The same of unequal parts, with their lengths at the end.
static PyObject* run_plain_parts(PyObject* module, PyObject* const* args, Py_ssize_t n) {
  (void)module;
  if (n != 6) return PyErr_Format(PyExc_TypeError, "run_plain_parts takes 6 arguments, not %zd", n);
  coll_door* door = door_of(args[0]);
  coll_call call;
  if (PyErr_Occurred() != NULL) return NULL;
  if (!begin(&call, door, args[1], args[4])) return PyErr_Occurred() ? NULL : missed();
  const plain_place place = {coll_rank(door->comm), coll_ranks(door->comm)};
  size_t lengths[kMostLengths];
  if (!plain_lengths(call.kind, args[5], place.ranks, lengths) ||
      !take_parts(&call, args[2], args[3], place, lengths)) {
    return missed();
  }
  return make(door, &call);
}

// (address of the coll_door, address of such a coll_call, lengths) -> how many rows this rank gets,
// of gather the root, or kMissed.
static PyObject* rows_of_parts(PyObject* module, PyObject* const* args, Py_ssize_t n) {
  (void)module;
  if (n != 3) return PyErr_Format(PyExc_TypeError, "rows_of_parts takes 3 arguments, not %zd", n);
  const coll_door* door = door_of(args[0]);
  const coll_call* prepared = (const coll_call*)PyLong_AsVoidPtr(args[1]);
  if (PyErr_Occurred() != NULL) return NULL;
  if (prepared == NULL || door->comm == NULL) return missed();
  const plain_place place = {coll_rank(door->comm), coll_ranks(door->comm)};
  size_t lengths[kMostLengths];
  if (!plain_lengths(prepared->kind, args[2], place.ranks, lengths)) return missed();
  return PyLong_FromSize_t(rows_got(prepared->kind, lengths, place));
}

int32_t asked_to_stop(void* context);  // what cffi makes of Python's

int32_t main_asked_to_stop(void* context) {
  return syscall(SYS_gettid) == getpid() ? asked_to_stop(context) : 0;
}

// What keeps the short ways out: no exception passes cffi. A Ctrl-C is for the caller to raise.
static int32_t fault(void) {
  const int interrupted = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
  if (interrupted) {
    PyErr_Clear();
  } else {
    PyErr_WriteUnraisable(NULL);
  }
  return interrupted ? -1 : 0;
}

// Adds the short ways to the module that cffi made. Called through cffi, so without the lock of the
// interpreter. Returns 1, -1 after a Ctrl-C, or 0 after anything else, which it prints.
int32_t install_plain_calls(void) {
  static PyMethodDef functions[] = {
      {"run_plain", (PyCFunction)(void (*)(void))run_plain, METH_FASTCALL, NULL},
      {"run_plain_parts", (PyCFunction)(void (*)(void))run_plain_parts, METH_FASTCALL, NULL},
      {"rows_of_parts", (PyCFunction)(void (*)(void))rows_of_parts, METH_FASTCALL, NULL},
      {"meet_dtype", (PyCFunction)(void (*)(void))meet_dtype, METH_FASTCALL, NULL},
      {"dlpack_capsule", (PyCFunction)(void (*)(void))dlpack_capsule, METH_FASTCALL, NULL},
      {"run_plain_sparse", (PyCFunction)(void (*)(void))run_plain_sparse, METH_FASTCALL, NULL},
      {"run_plain_plan", (PyCFunction)(void (*)(void))run_plain_plan, METH_FASTCALL, NULL},
      {"run_nccl_allreduce", (PyCFunction)(void (*)(void))run_nccl_allreduce, METH_FASTCALL, NULL},
      {NULL, NULL, 0, NULL},
  };
  const PyGILState_STATE state = PyGILState_Ensure();
  const int known = know_arrays() && know_making_arrays();
  PyObject* module = !known ? NULL : PyImport_ImportModule("collectives._native");
  const int done = module != NULL && PyModule_AddFunctions(module, functions) == 0 &&
                   add_plain_persistent(module) == 0;
  Py_XDECREF(module);
  const int32_t found = done ? 1 : fault();
  PyGILState_Release(state);
  return found;
}

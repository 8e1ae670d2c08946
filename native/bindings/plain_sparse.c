// SPDX-License-Identifier: Apache-2.0
#include "bindings/plain_sparse.h"

#include "bindings/clock.h"
#include "bindings/door.h"
#include "bindings/plain_arrays.h"
#include "bindings/plain_finish.h"
// After what says for which NumPy.
#include <numpy/arrayobject.h>

// Vectors up to here have indices that int32 holds.
enum { kNarrow = 31 };

static const char* const kKeeper = "coll_sparse";

static int is_index(int32_t dtype) {
  switch (dtype) {
    case COLL_INT8:
    case COLL_UINT8:
    case COLL_INT16:
    case COLL_UINT16:
    case COLL_INT32:
    case COLL_UINT32:
    case COLL_INT64:
    case COLL_UINT64:
      return 1;
    default:
      return 0;
  }
}

// Completes the call with a vector; 0 where the long way must look at it.
static int take_sparse(coll_sparse_call* call, PyObject* indices, PyObject* values,
                       PyObject* length, int32_t dtype) {
  PyArrayObject *places = plain_array(indices, 0), *those = plain_array(values, 0);
  if (places == NULL || those == NULL || !PyLong_CheckExact(length)) return 0;
  if (PyArray_NDIM(places) != 1 || PyArray_NDIM(those) != 1) return 0;
  if (PyArray_DIM(places, 0) != PyArray_DIM(those, 0)) return 0;
  int overflow = 0;
  const long long elements = PyLong_AsLongLongAndOverflow(length, &overflow);
  if (overflow != 0 || elements < 0 || elements > 1LL << kNarrow) return 0;
  call->index_dtype = plain_dtype(places);
  if (dtype == kMissed) dtype = plain_dtype(those);
  call->dtype = dtype;
  if (dtype == kMissed || !is_index(call->index_dtype)) return 0;
  call->indices = PyArray_DATA(places);
  call->values = PyArray_DATA(those);
  call->entries = (size_t)PyArray_DIM(places, 0);
  call->length = (uint64_t)elements;
  return 1;
}

// The result is made where the door is: a call that is interrupted ends later than this function.
static coll_status make_sparse(coll_door* door, const coll_sparse_call* call) {
  coll_comm* comm = door->comm;
  coll_status status;
  door->in_call = 1;
  Py_BEGIN_ALLOW_THREADS;
  const double begun = seconds_now();
  status = coll_sparse_run(comm, call, &door->sparse);
  door->sparse_taken.seconds = -begun;
  Py_END_ALLOW_THREADS;
  status = plain_finish(door, comm, coll_kind_name(COLL_ALLREDUCE), status);
  door->sparse_taken.seconds += seconds_now();
  door->sparse_taken.dtype = call->dtype;
  if (status == COLL_OK) door->sparse_taken.sequence = coll_sequence(comm);
  return status;
}

static void release_sparse(PyObject* capsule) {
  coll_sparse_free((coll_sparse*)PyCapsule_GetPointer(capsule, kKeeper));
}

// An array over memory that lives as long as its keeper. Takes the reference to the dtype.
static PyObject* array_over(PyObject* keeper, const void* data, size_t n, PyArray_Descr* dtype) {
  npy_intp length = (npy_intp)n;
  void* memory = n == 0 ? NULL : (void*)data;
  const int flags = n == 0 ? 0 : NPY_ARRAY_CARRAY;
  PyObject* array =
      PyArray_NewFromDescr(&PyArray_Type, dtype, 1, &length, NULL, memory, flags, NULL);
  if (array == NULL || n == 0) return array;
  Py_INCREF(keeper);
  if (PyArray_SetBaseObject((PyArrayObject*)array, keeper) == 0) return array;
  Py_DECREF(array);
  return NULL;
}

// What the program gets of a result, which is let go with it.
static PyObject* arrays_of(coll_sparse* made, const coll_sparse_view* view, PyArray_Descr* dtype) {
  PyObject* keeper = PyCapsule_New(made, kKeeper, release_sparse);
  if (keeper == NULL) {
    coll_sparse_free(made);
    return NULL;
  }
  Py_INCREF(dtype);
  PyObject* values = array_over(keeper, view->values, view->entries, dtype);
  PyObject* found = values;
  if (values != NULL && !view->dense) {
    PyArray_Descr* narrow = PyArray_DescrFromType(NPY_INT32);
    PyObject* indices = array_over(keeper, view->indices, view->entries, narrow);
    found = indices == NULL ? NULL : PyTuple_Pack(2, indices, values);
    Py_XDECREF(indices);
    Py_DECREF(values);
  }
  Py_DECREF(keeper);
  return found;
}

PyObject* run_plain_sparse(PyObject* module, PyObject* const* args, Py_ssize_t n) {
  (void)module;
  if (n != 6) {
    return PyErr_Format(PyExc_TypeError, "run_plain_sparse takes 6 arguments, not %zd", n);
  }
  coll_door* door = (coll_door*)PyLong_AsVoidPtr(args[0]);
  const coll_sparse_call* prepared = (const coll_sparse_call*)PyLong_AsVoidPtr(args[1]);
  const int32_t dtype = (int32_t)PyLong_AsLong(args[5]);
  if (PyErr_Occurred() != NULL) return NULL;
  if (PyArray_API == NULL || door == NULL || prepared == NULL || door->comm == NULL ||
      door->in_call) {
    return PyLong_FromLong(kMissed);
  }
  coll_sparse_call call = *prepared;
  if (!take_sparse(&call, args[2], args[3], args[4], dtype)) return PyLong_FromLong(kMissed);
  PyArray_Descr* kind = PyArray_DESCR((PyArrayObject*)args[3]);
  Py_INCREF(kind);  // another thread may change the array meanwhile
  const coll_status status = make_sparse(door, &call);
  PyObject* result = NULL;
  if (status == COLL_OK) {
    coll_sparse* made = door->sparse;
    coll_sparse_look(made, &door->sparse_taken.view);
    result = arrays_of(made, &door->sparse_taken.view, kind);
  } else if (status != COLL_IN_PROGRESS) {
    result = PyLong_FromLong(status);
  }
  Py_DECREF(kind);
  return result;
}

int know_making_arrays(void) {
  if (_import_array() == 0) return 1;
  PyArray_API = NULL;
  if (!PyErr_ExceptionMatches(PyExc_ImportError) && !PyErr_ExceptionMatches(PyExc_RuntimeError)) {
    return 0;
  }
  PyErr_Clear();  // the long way serves
  return 1;
}

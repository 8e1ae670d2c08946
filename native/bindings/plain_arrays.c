// SPDX-License-Identifier: Apache-2.0
#include "bindings/plain_arrays.h"

#include <string.h>

#include "collectives.h"

static PyTypeObject* ndarray;  // kept for ever

// What ml_dtypes has registered with NumPy, in the order in which arrays of it were first seen.
enum { kMostMet = 8 };
static struct {
  int number;
  int32_t dtype;
} met[kMostMet];
static int all_met;

static int32_t met_dtype(int number) {
  for (int i = 0; i < all_met; ++i) {
    if (met[i].number == number) return met[i].dtype;
  }
  return kMissed;
}

PyObject* meet_dtype(PyObject* module, PyObject* const* args, Py_ssize_t n) {
  (void)module;
  if (n != 2) return PyErr_Format(PyExc_TypeError, "meet_dtype takes 2 arguments, not %zd", n);
  const long number = PyLong_AsLong(args[0]), dtype = PyLong_AsLong(args[1]);
  if (PyErr_Occurred() != NULL) return NULL;
  if (number >= NPY_USERDEF && all_met < kMostMet && met_dtype((int)number) == kMissed) {
    met[all_met].number = (int)number;
    met[all_met++].dtype = (int32_t)dtype;
  }
  Py_RETURN_NONE;
}

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
      return number >= NPY_USERDEF ? met_dtype(number) : kMissed;
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

int32_t plain_dtype(PyArrayObject* array) {
  const PyArray_Descr* dtype = PyArray_DESCR(array);
  if (dtype->type_num == NPY_VOID) return dtype_of_structure((PyObject*)array);
  return PyArray_ISNBO(dtype->byteorder) ? dtype_of_number(dtype->type_num) : kMissed;
}

PyArrayObject* plain_array(PyObject* object, int written) {
  if (Py_TYPE(object) != ndarray) return NULL;
  PyArrayObject* array = (PyArrayObject*)object;
  const int wanted =
      NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | (written ? NPY_ARRAY_WRITEABLE : 0);
  return PyArray_CHKFLAGS(array, wanted) ? array : NULL;
}

size_t plain_elements(PyArrayObject* array) {
  size_t n = 1;
  for (int i = 0; i < PyArray_NDIM(array); ++i) n *= (size_t)PyArray_DIM(array, i);
  return n;
}

int plain_same_axes(PyArrayObject* one, int skip, PyArrayObject* other, int other_skip) {
  const int axes = PyArray_NDIM(one) - skip;
  if (axes != PyArray_NDIM(other) - other_skip) return 0;
  for (int i = 0; i < axes; ++i) {
    if (PyArray_DIM(one, skip + i) != PyArray_DIM(other, other_skip + i)) return 0;
  }
  return 1;
}

// The class numpy.ndarray; NULL where it does not lie in memory as the headers said that this file
// was compiled with.
static PyTypeObject* class_of_arrays(void) {
  PyObject* numpy = PyImport_ImportModule("numpy");
  PyObject* class = numpy == NULL ? NULL : PyObject_GetAttrString(numpy, "ndarray");
  PyObject* array = class == NULL ? NULL : PyObject_CallFunction(class, "((ii)s)", 2, 3, "f4");
  PyArrayObject* seen = (PyArrayObject*)array;
  const int known = array != NULL && PyArray_NDIM(seen) == 2 && PyArray_DIM(seen, 0) == 2 &&
                    PyArray_DIM(seen, 1) == 3 && plain_dtype(seen) == COLL_FLOAT32;
  Py_XDECREF(array);
  Py_XDECREF(numpy);
  if (known) return (PyTypeObject*)class;
  Py_XDECREF(class);
  return NULL;
}

int know_arrays(void) {
  ndarray = class_of_arrays();
  return ndarray != NULL;
}

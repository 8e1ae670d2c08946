// SPDX-License-Identifier: Apache-2.0
#include "bindings/plain_parts.h"

static int length_of(PyObject* number, size_t* length) {
  if (!PyLong_CheckExact(number)) return 0;  // True would be taken for 1
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (overflow != 0 || value < 0) return 0;
  *length = (size_t)value;
  return 1;
}

static int lengths_of_array(PyArrayObject* array, npy_intp n, size_t* lengths) {
  if (PyArray_NDIM(array) != 1 || PyArray_DIM(array, 0) != n) return 0;
  if (plain_dtype(array) != COLL_INT64) return 0;
  const int64_t* values = (const int64_t*)PyArray_DATA(array);
  for (npy_intp i = 0; i < n; ++i) {
    if (values[i] < 0) return 0;
    lengths[i] = (size_t)values[i];
  }
  return 1;
}

static int lengths_of(PyObject* counts, npy_intp n, size_t* lengths) {
  const int list = PyList_CheckExact(counts);
  if (!list && !PyTuple_CheckExact(counts)) {
    PyArrayObject* array = plain_array(counts, 0);
    return array != NULL && lengths_of_array(array, n, lengths);
  }
  if ((list ? PyList_Size(counts) : PyTuple_Size(counts)) != n) return 0;
  for (npy_intp i = 0; i < n; ++i) {
    PyObject* number = list ? PyList_GetItem(counts, i) : PyTuple_GetItem(counts, i);
    if (!length_of(number, lengths + i)) return 0;
  }
  return 1;
}

int plain_lengths(int32_t kind, PyObject* counts, npy_intp ranks, size_t* lengths) {
  if (kind != COLL_ALLTOALL) return ranks <= kMostLengths && lengths_of(counts, ranks, lengths);
  const int list = PyList_CheckExact(counts);
  if ((!list && !PyTuple_CheckExact(counts)) || ranks * ranks > kMostLengths) return 0;
  if ((list ? PyList_Size(counts) : PyTuple_Size(counts)) != ranks) return 0;
  for (npy_intp i = 0; i < ranks; ++i) {
    PyObject* row = list ? PyList_GetItem(counts, i) : PyTuple_GetItem(counts, i);
    if (!lengths_of(row, ranks, lengths + i * ranks)) return 0;
  }
  return 1;
}

// Of every `step`-th length from `first` on. What is larger than any memory fits no array.
static size_t sum_of(const size_t* lengths, npy_intp first, npy_intp n, npy_intp step) {
  size_t sum = 0;
  for (npy_intp i = 0; i < n; ++i) {
    const size_t length = lengths[first + i * step];
    sum = length > PY_SSIZE_T_MAX - sum ? PY_SSIZE_T_MAX : sum + length;
  }
  return sum;
}

size_t rows_given(int32_t kind, const size_t* lengths, plain_place place) {
  const npy_intp p = place.ranks;
  if (kind == COLL_ALLTOALL) return sum_of(lengths, place.rank * p, p, 1);
  const int own = kind == COLL_ALLGATHER || kind == COLL_GATHER;
  return own ? lengths[place.rank] : sum_of(lengths, 0, p, 1);
}

size_t rows_got(int32_t kind, const size_t* lengths, plain_place place) {
  const npy_intp p = place.ranks;
  if (kind == COLL_ALLTOALL) return sum_of(lengths, place.rank, p, p);
  const int own = kind == COLL_REDUCE_SCATTER || kind == COLL_SCATTER;
  return own ? lengths[place.rank] : sum_of(lengths, 0, p, 1);
}

static int has_rows(PyArrayObject* array, size_t rows) {
  return PyArray_NDIM(array) > 0 && (size_t)PyArray_DIM(array, 0) == rows;
}

// Turns lengths along the first axis to elements; 0 where they are more than there can be.
static int to_elements(size_t* lengths, npy_intp n, PyArrayObject* like) {
  size_t row = 1;
  for (int i = 1; i < PyArray_NDIM(like); ++i) row *= (size_t)PyArray_DIM(like, i);
  for (npy_intp i = 0; row != 1 && i < n; ++i) {
    if (row != 0 && lengths[i] > PY_SSIZE_T_MAX / row) return 0;
    lengths[i] *= row;
  }
  return 1;
}

int take_parts(coll_call* call, PyObject* x, PyObject* out, plain_place place, size_t* lengths) {
  PyArrayObject *in = NULL, *result = NULL;
  if (x != Py_None && (in = plain_array(x, 0)) == NULL) return 0;
  if (out != Py_None && (result = plain_array(out, 1)) == NULL) return 0;
  if (in == NULL && result == NULL) return 0;
  if (in != NULL && !has_rows(in, rows_given(call->kind, lengths, place))) return 0;
  if (result != NULL && !has_rows(result, rows_got(call->kind, lengths, place))) return 0;
  if (in != NULL && result != NULL &&
      (plain_dtype(in) != plain_dtype(result) || !plain_same_axes(in, 1, result, 1))) {
    return 0;
  }
  PyArrayObject* some = in != NULL ? in : result;
  const npy_intp n = call->kind == COLL_ALLTOALL ? place.ranks * place.ranks : place.ranks;
  call->dtype = plain_dtype(some);
  if (call->dtype == kMissed || !to_elements(lengths, n, some)) return 0;
  call->input = in != NULL ? PyArray_DATA(in) : NULL;
  call->output = result != NULL ? PyArray_DATA(result) : NULL;
  call->count = plain_elements(some);
  call->counts = lengths;
  return 1;
}

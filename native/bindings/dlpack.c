/* SPDX-License-Identifier: Apache-2.0
 * The layouts and the life of a capsule: https://dmlc.github.io/dlpack/latest/c_api.html. Who takes
 * the memory over renames the capsule and calls the deleter, on any thread; a capsule that keeps
 * its name until it goes was not taken. */
#include "bindings/dlpack.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { kCuda = 2 };

static const char kUnversioned[] = "dltensor", kVersioned[] = "dltensor_versioned";

typedef struct tensor {
  void* data;
  int32_t device_type, device;
  int32_t axes;
  uint8_t kind, bits;
  uint16_t lanes;
  int64_t* shape;
  int64_t* strides; /* in elements */
  uint64_t byte_offset;
} tensor;

typedef struct managed {
  tensor tensor;
  void* manager;
  void (*deleter)(struct managed*);
} managed;

typedef struct versioned {
  uint32_t major, minor;
  void* manager;
  void (*deleter)(struct versioned*);
  uint64_t flags;
  tensor tensor;
} versioned;

/* One of both, and what it points to. */
typedef struct shown {
  union {
    managed old;
    versioned now;
  } as;
  PyObject* owner;
  int64_t sizes[]; /* the shape, then the strides */
} shown;

/* Once Python has ended there is nobody to give the memory back to. */
static void let_go(shown* what) {
  if (Py_IsInitialized()) {
    const PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(what->owner);
    PyGILState_Release(state);
  }
  free(what);
}
static void delete_old(managed* what) { let_go((shown*)what->manager); }
static void delete_now(versioned* what) { let_go((shown*)what->manager); }

static void drop(PyObject* capsule) {
  for (int i = 0; i < 2; ++i) {
    const char* name = i == 0 ? kUnversioned : kVersioned;
    if (!PyCapsule_IsValid(capsule, name)) continue;
    let_go((shown*)PyCapsule_GetContext(capsule));
  }
}

/* Fills in shape and strides; 0 with an exception where the shape is none. */
static int lay_out(tensor* to, int64_t* sizes, PyObject* shape) {
  const Py_ssize_t axes = PyTuple_Size(shape);
  int64_t stride = 1;
  for (Py_ssize_t i = axes; i-- > 0;) {
    const int64_t size = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
    if (PyErr_Occurred() != NULL) return 0;
    sizes[i] = size;
    sizes[axes + i] = stride;
    stride *= size;
  }
  to->axes = (int32_t)axes;
  to->shape = sizes;
  to->strides = sizes + axes;
  return 1;
}

/* From the arguments behind the owner. */
static int describe(tensor* to, int64_t* sizes, PyObject* const* args) {
  to->data = PyLong_AsVoidPtr(args[0]);
  to->device_type = kCuda;
  to->device = (int32_t)PyLong_AsLong(args[1]);
  to->kind = (uint8_t)PyLong_AsUnsignedLong(args[2]);
  to->bits = (uint8_t)PyLong_AsUnsignedLong(args[3]);
  to->lanes = 1;
  to->byte_offset = 0;
  return PyErr_Occurred() == NULL && lay_out(to, sizes, args[4]);
}

PyObject* dlpack_capsule(PyObject* module, PyObject* const* args, Py_ssize_t n) {
  (void)module;
  if (n != 7) return PyErr_Format(PyExc_TypeError, "dlpack_capsule takes 7 arguments, not %zd", n);
  const int now = PyObject_IsTrue(args[6]);
  const Py_ssize_t axes = PyTuple_Size(args[5]);
  if (now < 0 || axes < 0) return NULL;
  shown* what = malloc(sizeof *what + 2 * (size_t)axes * sizeof(int64_t));
  if (what == NULL) return PyErr_NoMemory();
  if (now) {
    what->as.now = (versioned){.major = 1, .minor = 0, .manager = what, .deleter = delete_now};
  } else {
    what->as.old = (managed){.manager = what, .deleter = delete_old};
  }
  tensor* const to = now ? &what->as.now.tensor : &what->as.old.tensor;
  if (!describe(to, what->sizes, args + 1)) {
    free(what);
    return NULL;
  }
  what->owner = args[0];
  Py_INCREF(what->owner);
  PyObject* capsule = PyCapsule_New(&what->as, now ? kVersioned : kUnversioned, drop);
  if (capsule == NULL) {
    let_go(what);
  } else {
    PyCapsule_SetContext(capsule, what);
  }
  return capsule;
}

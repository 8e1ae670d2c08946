// SPDX-License-Identifier: Apache-2.0
// The base of collectives.persistent.PersistentCall: call() without a function of Python, which
// costs as much as two ranks need for a small sum. What is not as plain as can be it leaves to
// _otherwise() of the class.
#include "bindings/plain_persistent.h"

#include <stddef.h>
#include <structmember.h>

#include "bindings/plain_arrays.h"
#include "bindings/plain_finish.h"

typedef struct {
  PyObject_HEAD PyObject* comm;  // the Caller: its _plain says whether calls are made at once
  PyObject* result;              // what every call returns
  PyObject* target;              // None, or whom to tell of the result
  // Addresses: of the coll_door, and of the coll_persistent, 0 once it is freed.
  unsigned long long door, persistent;
  int32_t kind;
} plain_persistent;

static PyObject* plain_word;  // "_plain"

static int goes_at_once(const plain_persistent* self) {
  const coll_door* door = (const coll_door*)(uintptr_t)self->door;
  if (self->persistent == 0 || self->comm == NULL) return 0;
  if (self->target != Py_None || self->result == NULL) return 0;
  if (door == NULL || door->comm == NULL || door->in_call) return 0;
  PyObject* plain = PyObject_GetAttr(self->comm, plain_word);
  Py_XDECREF(plain);  // True and False stay
  return plain == NULL ? -1 : plain == Py_True;
}

static PyObject* call(PyObject* object, PyObject* args, PyObject* options) {
  plain_persistent* self = (plain_persistent*)object;
  if (PyTuple_Size(args) != 0 || (options != NULL && PyDict_Size(options) != 0)) {
    PyErr_SetString(PyExc_TypeError, "a persistent call has its arguments already: it takes none");
    return NULL;
  }
  coll_status status = kMissed;
  const int at_once = goes_at_once(self);
  if (at_once < 0) return NULL;
  if (at_once) {
    coll_door* door = (coll_door*)(uintptr_t)self->door;
    coll_comm* comm = door->comm;
    door->in_call = 1;
    Py_BEGIN_ALLOW_THREADS;
    status = coll_run_persistent((coll_persistent*)(uintptr_t)self->persistent);
    Py_END_ALLOW_THREADS;
    status = plain_finish(door, comm, coll_kind_name(self->kind), status);
    if (status == COLL_IN_PROGRESS) return NULL;
    if (status == COLL_OK) {
      Py_INCREF(self->result);
      return self->result;
    }
  }
  return PyObject_CallMethod(object, "_otherwise", "i", (int)status);
}

static int traverse(PyObject* object, visitproc visit, void* arg) {
  plain_persistent* self = (plain_persistent*)object;
  Py_VISIT(self->comm);
  Py_VISIT(self->result);
  Py_VISIT(self->target);
  Py_VISIT(Py_TYPE(object));
  return 0;
}

static int clear(PyObject* object) {
  plain_persistent* self = (plain_persistent*)object;
  Py_CLEAR(self->comm);
  Py_CLEAR(self->result);
  Py_CLEAR(self->target);
  return 0;
}

static void dealloc(PyObject* object) {
  PyObject_GC_UnTrack(object);
  clear(object);
  PyTypeObject* type = Py_TYPE(object);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

int add_plain_persistent(PyObject* module) {
  static PyMemberDef members[] = {
      {"_comm", T_OBJECT, offsetof(plain_persistent, comm), 0, NULL},
      {"_result", T_OBJECT, offsetof(plain_persistent, result), 0, NULL},
      {"_target", T_OBJECT, offsetof(plain_persistent, target), 0, NULL},
      {"_door", T_ULONGLONG, offsetof(plain_persistent, door), 0, NULL},
      {"_address", T_ULONGLONG, offsetof(plain_persistent, persistent), 0, NULL},
      {"_kind", T_INT, offsetof(plain_persistent, kind), 0, NULL},
      {NULL, 0, 0, 0, NULL},
  };
  static PyType_Slot slots[] = {
      {Py_tp_members, members}, {Py_tp_call, call},       {Py_tp_traverse, traverse},
      {Py_tp_clear, clear},     {Py_tp_dealloc, dealloc}, {0, NULL},
  };
  static PyType_Spec spec = {
      .name = "collectives._native.PlainPersistent",
      .basicsize = sizeof(plain_persistent),
      .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
      .slots = slots,
  };
  if (plain_word == NULL) plain_word = PyUnicode_InternFromString("_plain");
  PyObject* type = plain_word == NULL ? NULL : PyType_FromSpec(&spec);
  const int added = type == NULL ? -1 : PyObject_SetAttrString(module, "PlainPersistent", type);
  Py_XDECREF(type);
  return added;
}

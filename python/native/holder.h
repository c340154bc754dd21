#pragma once
// Python types that hold one C++ object.

#include <utility>

#include "python/native/object.h"

namespace sylvite::python {

/// An object of Python with a `Held` in it. nullptr only while it is made.
template <typename Held>
struct Holder {
  PyObject_HEAD Held* held;

  [[nodiscard]] static Held& of(PyObject* self) { return *reinterpret_cast<Holder*>(self)->held; }

  static void free_object(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    delete reinterpret_cast<Holder*>(self)->held;
    reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(reinterpret_cast<PyObject*>(type));
  }

  /// Throws PythonError.
  [[nodiscard]] static Ref make(PyObject* type, Held held) {
    auto* made = reinterpret_cast<PyTypeObject*>(type);
    Ref object = Ref::own(reinterpret_cast<allocfunc>(PyType_GetSlot(made, Py_tp_alloc))(made, 0));
    reinterpret_cast<Holder*>(object.get())->held = new Held(std::move(held));
    return object;
  }
};

/// A method of a type, as PyMethodDef wants it.
template <typename Function>
PyCFunction method(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

}  // namespace sylvite::python

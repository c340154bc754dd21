#pragma once
// Python's objects in C++: references that count, and errors that cross the border both ways.

#ifndef Py_LIMITED_API
#error "compile with Py_LIMITED_API: one binary serves every Python from 3.11 on"
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fork.h"

namespace sylvite::python {

/// A Python error is set: whoever catches this returns to Python.
struct PythonError {};

/// Owns a reference. All members need the GIL.
class Ref {
 public:
  Ref() = default;
  /// Takes over what a call returned. Throws PythonError for nullptr.
  [[nodiscard]] static Ref own(PyObject* object) {
    if (object == nullptr) throw PythonError();
    return Ref(object);
  }
  [[nodiscard]] static Ref share(PyObject* object) {
    Py_XINCREF(object);
    return Ref(object);
  }
  Ref(const Ref& other) : object_(other.object_) { Py_XINCREF(object_); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }

  [[nodiscard]] PyObject* get() const { return object_; }
  [[nodiscard]] PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  explicit Ref(PyObject* object) : object_(object) {}
  PyObject* object_ = nullptr;
};

/// Lets other Python threads run while it lives.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() { PyEval_RestoreThread(state_); }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

/// The GIL, in a thread that has it or not. Forks do not wait for who waits for it: who has it may be about to fork.
class WithGil {
 public:
  WithGil() : state_(take()) {}
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  static PyGILState_STATE take() {
    const ForkPoint others_go_on;
    return PyGILState_Ensure();
  }
  PyGILState_STATE state_;
};

/// Keeps the object until the last copy is gone; that may happen in any thread, with or without the GIL.
[[nodiscard]] std::shared_ptr<const void> keep(PyObject* object);

/// Throws PythonError for what is no text.
[[nodiscard]] std::string to_text(PyObject* object);
[[nodiscard]] Ref from_text(std::string_view text);
[[nodiscard]] Ref from_texts(const std::vector<std::string>& texts);
[[nodiscard]] Ref from_integers(const std::vector<std::int64_t>& numbers);
/// Throws PythonError for what is no integer of 64 bits.
[[nodiscard]] std::int64_t to_integer(PyObject* object);
/// The items of a list or tuple, borrowed. Throws PythonError for others.
[[nodiscard]] std::vector<PyObject*> items_of(PyObject* sequence);

/// Adds the exceptions of the package to its module: one for each kind of sylvite::Error. Throws PythonError.
void add_exceptions(PyObject* module);
/// Sets the Python error for the C++ exception that is being handled.
void set_python_error() noexcept;

/// What `body` returns, a PyObject* or int; where it throws, the Python error is set and `failed` returned.
template <typename Body, typename Result>
Result guarded(Body body, Result failed) noexcept {
  try {
    return body();
  } catch (...) {
    set_python_error();
    return failed;
  }
}
template <typename Body>
PyObject* guarded(Body body) noexcept {
  return guarded(body, static_cast<PyObject*>(nullptr));
}

}  // namespace sylvite::python

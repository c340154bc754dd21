#include "python/native/object.h"

#include <array>
#include <new>

#include "sylvite/error.h"

namespace sylvite::python {
namespace {

struct Kind {
  ErrorCode code;
  const char* name;
  PyObject** also;  ///< the built-in exception that it is besides
};

// The kinds of error.h, as Python knows them.
const std::array<Kind, 8>& kinds() {
  static const std::array<Kind, 8> table = {{
      {ErrorCode::internal, "InternalError", nullptr},
      {ErrorCode::bad_usage, "UsageError", &PyExc_ValueError},
      {ErrorCode::bad_model, "ModelError", &PyExc_ValueError},
      {ErrorCode::unsupported, "UnsupportedError", &PyExc_NotImplementedError},
      {ErrorCode::bad_input, "InputError", &PyExc_ValueError},
      {ErrorCode::io_failure, "IoError", &PyExc_OSError},
      {ErrorCode::compile_failure, "CompileError", nullptr},
      {ErrorCode::verify_failure, "VerifyError", nullptr},
  }};
  return table;
}

std::array<Ref, 8>& exceptions() {
  static std::array<Ref, 8>& made = *new std::array<Ref, 8>();  // outlives the interpreter's own end
  return made;
}

PyObject* exception_of(ErrorCode code) {
  for (std::size_t i = 0; i < kinds().size(); ++i)
    if (kinds()[i].code == code && exceptions()[i]) return exceptions()[i].get();
  return PyExc_RuntimeError;
}

}  // namespace

std::shared_ptr<const void> keep(PyObject* object) {
  Py_INCREF(object);
  return {object, [](const void* kept) {
            if (!Py_IsInitialized()) return;
            const WithGil gil;
            Py_DECREF(static_cast<PyObject*>(const_cast<void*>(kept)));
          }};
}

std::string to_text(PyObject* object) {
  Py_ssize_t size = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(object, &size);
  if (bytes == nullptr) throw PythonError();
  return {bytes, static_cast<std::size_t>(size)};
}

Ref from_text(std::string_view text) {
  return Ref::own(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

Ref from_texts(const std::vector<std::string>& texts) {
  Ref list = Ref::own(PyList_New(0));
  for (const std::string& text : texts)
    if (PyList_Append(list.get(), from_text(text).get()) != 0) throw PythonError();
  return list;
}

Ref from_integers(const std::vector<std::int64_t>& numbers) {
  Ref tuple = Ref::own(PyTuple_New(static_cast<Py_ssize_t>(numbers.size())));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i),
                    Ref::own(PyLong_FromLongLong(numbers[i])).release());
  return tuple;
}

std::int64_t to_integer(PyObject* object) {
  const long long number = PyLong_AsLongLong(object);
  if (number == -1 && PyErr_Occurred() != nullptr) throw PythonError();
  return number;
}

std::vector<PyObject*> items_of(PyObject* sequence) {
  std::vector<PyObject*> items;
  const bool is_list = PyList_Check(sequence) != 0;
  if (!is_list && !PyTuple_Check(sequence)) {
    PyErr_SetString(PyExc_TypeError, "expected a list or a tuple");
    throw PythonError();
  }
  const Py_ssize_t count = is_list ? PyList_Size(sequence) : PyTuple_Size(sequence);
  items.reserve(static_cast<std::size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i)
    items.push_back(is_list ? PyList_GetItem(sequence, i) : PyTuple_GetItem(sequence, i));
  return items;
}

void add_exceptions(PyObject* module) {
  const auto make = [&](const char* name, PyObject* bases, const char* meaning) {
    const std::string full = std::string("sylvite.") + name;
    Ref made = Ref::own(PyErr_NewExceptionWithDoc(full.c_str(), meaning, bases, nullptr));
    if (PyModule_AddObjectRef(module, name, made.get()) != 0) throw PythonError();
    return made;
  };
  const Ref base = make("Error", PyExc_RuntimeError, "What Sylvite throws on purpose.");
  for (std::size_t i = 0; i < kinds().size(); ++i) {
    const Kind& kind = kinds()[i];
    const Ref bases = Ref::own(kind.also == nullptr ? PyTuple_Pack(1, base.get())
                                                    : PyTuple_Pack(2, base.get(), *kind.also));
    exceptions().at(i) = make(kind.name, bases.get(), nullptr);
    const Ref code = Ref::own(PyLong_FromLong(static_cast<long>(kind.code)));
    if (PyObject_SetAttrString(exceptions().at(i).get(), "code", code.get()) != 0) throw PythonError();
  }
}

void set_python_error() noexcept {
  try {
    throw;
  } catch (const PythonError&) {  // NOLINT(bugprone-empty-catch): set already
  } catch (const Error& error) {
    PyErr_SetString(exception_of(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_Format(exception_of(ErrorCode::internal), "%s (not expected here; please report)", error.what());
  }
}

}  // namespace sylvite::python

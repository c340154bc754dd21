// The Python type of a tensor that is ours.

#include <string>

#include "python/native/array.h"
#include "python/native/holder.h"
#include "sylvite/error.h"

namespace sylvite::python {
namespace {

using TensorObject = Holder<Tensor>;

PyObject*& tensor_type() {
  static PyObject* type = nullptr;
  return type;
}

const Tensor& tensor_of(PyObject* self) {
  return TensorObject::of(self);
}

PyObject* get_shape(PyObject* self, void* /*unused*/) {
  return guarded([&] { return from_integers(tensor_of(self).dims()).release(); });
}

PyObject* get_dtype(PyObject* self, void* /*unused*/) {
  return guarded([&] { return from_text(dtype_name(tensor_of(self).dtype())).release(); });
}

void free_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor_versioned") == 0) return;
  auto* managed = static_cast<dlpack::ManagedVersioned*>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
  managed->deleter(managed);
}

void free_unversioned(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor") == 0) return;
  auto* managed = static_cast<dlpack::Managed*>(PyCapsule_GetPointer(capsule, "dltensor"));
  managed->deleter(managed);
}

/// The same tensor for a reader from before versions.
dlpack::Managed* without_version(dlpack::ManagedVersioned* versioned) {
  auto* managed = new dlpack::Managed{versioned->dl_tensor, versioned, nullptr};
  managed->deleter = [](dlpack::Managed* self) {
    auto* inner = static_cast<dlpack::ManagedVersioned*>(self->manager_ctx);
    inner->deleter(inner);
    delete self;
  };
  return managed;
}

PyObject* to_dlpack(PyObject* self, PyObject* arguments, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    static const char* const names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
    PyObject* stream = nullptr;
    PyObject* max_version = nullptr;
    PyObject* device = nullptr;
    PyObject* copy = nullptr;
    if (PyArg_ParseTupleAndKeywords(arguments, keywords, "|$OOOO", const_cast<char**>(names), &stream,
                                    &max_version, &device, &copy) == 0)
      throw PythonError();
    Tensor tensor = tensor_of(self);
    if (copy == Py_True) {
      PyErr_SetString(PyExc_BufferError, "a copy: not made here; copy the tensor that is read");
      throw PythonError();
    }
    const bool versioned = max_version != nullptr && max_version != Py_None &&
                           to_integer(items_of(max_version).at(0)) >= dlpack::major_version;
    dlpack::ManagedVersioned* managed = managed_tensor(tensor, tensor.dims(), dense_strides(tensor.dims()));
    if (versioned) return PyCapsule_New(managed, "dltensor_versioned", free_capsule);
    return PyCapsule_New(without_version(managed), "dltensor", free_unversioned);
  });
}

PyObject* dlpack_device(PyObject* /*self*/, PyObject* /*unused*/) {
  return Py_BuildValue("(ii)", dlpack::cpu_device, 0);
}

const char* buffer_format(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return "?";
    case DType::i8:
      return "b";
    case DType::i16:
      return "h";
    case DType::i32:
      return "i";
    case DType::i64:
      return "q";
    case DType::u8:
      return "B";
    case DType::u16:
      return "H";
    case DType::u32:
      return "I";
    case DType::u64:
      return "Q";
    case DType::f16:
      return "e";
    case DType::f32:
      return "f";
    case DType::f64:
      return "d";
    default:
      return nullptr;
  }
}

/// Shape and strides of a buffer that is handed out, outermost first.
struct BufferShape {
  std::vector<Py_ssize_t> shape;
  std::vector<Py_ssize_t> strides;
};

int get_buffer(PyObject* self, Py_buffer* view, int /*flags*/) {
  return guarded(
      [&] {
        const Tensor& tensor = tensor_of(self);
        const char* format = buffer_format(tensor.dtype());
        if (format == nullptr) {
          PyErr_Format(PyExc_BufferError, "elements of type %s have no format; read the tensor by DLPack",
                       std::string(dtype_name(tensor.dtype())).c_str());
          throw PythonError();
        }
        const auto size = static_cast<Py_ssize_t>(dtype_size(tensor.dtype()));
        auto shape = std::make_unique<BufferShape>();
        shape->shape.assign(tensor.dims().begin(), tensor.dims().end());
        for (const std::int64_t stride : dense_strides(tensor.dims()))
          shape->strides.push_back(stride * size);
        *view = {.buf = const_cast<void*>(tensor.data()),
                 .obj = self,
                 .len = static_cast<Py_ssize_t>(tensor.byte_size()),
                 .itemsize = size,
                 .readonly = 0,
                 .ndim = static_cast<int>(tensor.dims().size()),
                 .format = const_cast<char*>(format),
                 .shape = shape->shape.data(),
                 .strides = shape->strides.data(),
                 .suboffsets = nullptr,
                 .internal = shape.get()};
        (void)shape.release();  // NOLINT(bugprone-unused-return-value): the view's `internal` owns it now
        Py_INCREF(self);
        return 0;
      },
      -1);
}

void release_buffer(PyObject* /*self*/, Py_buffer* view) {
  delete static_cast<BufferShape*>(view->internal);
}

PyType_Spec* tensor_spec() {
  static PyGetSetDef properties[] = {
      {"shape", get_shape, nullptr, "Extents, outermost first.", nullptr},
      {"dtype", get_dtype, nullptr, "Sylvite's name of the elements' type.", nullptr},
      {nullptr, nullptr, nullptr, nullptr, nullptr}};
  static PyMethodDef methods[] = {
      {"__dlpack__", method(to_dlpack), METH_VARARGS | METH_KEYWORDS, "The tensor for another library."},
      {"__dlpack_device__", dlpack_device, METH_NOARGS, "(1, 0): the CPU's memory."},
      {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(TensorObject::free_object)},
                                {Py_tp_getset, properties},
                                {Py_tp_methods, methods},
                                {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                                {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                                {0, nullptr}};
  static PyType_Spec made = {"sylvite._native.Tensor", sizeof(TensorObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  return &made;
}

}  // namespace

void add_tensor_type(PyObject* module) {
  tensor_type() = Ref::own(PyType_FromSpec(tensor_spec())).release();
  if (PyModule_AddObjectRef(module, "Tensor", tensor_type()) != 0) throw PythonError();
}

Ref tensor_object(Tensor tensor) {
  return TensorObject::make(tensor_type(), std::move(tensor));
}

}  // namespace sylvite::python

#include "python/native/array.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "base/error.h"
#include "frontend/values/strided.h"
#include "sylvite/device_tensor.h"

namespace sylvite::python {
namespace {

Array view_of_tensor(const dlpack::DlTensor& tensor) {
  Array array;
  array.dtype = dtype_of_dlpack(tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes);
  array.dims.assign(tensor.shape, tensor.shape + tensor.ndim);
  if (tensor.strides != nullptr)
    array.strides.assign(tensor.strides, tensor.strides + tensor.ndim);
  else
    array.strides = dense_strides(array.dims);
  array.data = tensor.address();
  array.device = tensor.device;
  return array;
}

template <typename Managed>
Array take(Managed* managed) {
  const std::shared_ptr<const void> owner(managed, [](const void* held) {
    auto* tensor = static_cast<Managed*>(const_cast<void*>(held));
    if (tensor->deleter != nullptr) tensor->deleter(tensor);
  });
  Array array = view_of_tensor(managed->dl_tensor);
  array.keep_alive = owner;
  return array;
}

Ref call_dlpack(PyObject* object) {
  const Ref method = Ref::own(PyObject_GetAttrString(object, "__dlpack__"));
  const Ref none = Ref::own(PyTuple_New(0));
  const Ref keywords = Ref::own(Py_BuildValue("{s:(ii)}", "max_version", 1, 3));
  if (PyObject* capsule = PyObject_Call(method.get(), none.get(), keywords.get())) return Ref::own(capsule);
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw PythonError();
  PyErr_Clear();  // a library from before versions
  return Ref::own(PyObject_CallNoArgs(method.get()));
}

Array read_capsule(PyObject* capsule) {
  const auto taken = [&](const char* name, const char* used) {
    void* pointer = PyCapsule_GetPointer(capsule, name);
    if (pointer == nullptr || PyCapsule_SetName(capsule, used) != 0) throw PythonError();
    return pointer;
  };
  if (PyCapsule_IsValid(capsule, "dltensor_versioned") != 0)
    return take(
        static_cast<dlpack::ManagedVersioned*>(taken("dltensor_versioned", "used_dltensor_versioned")));
  if (PyCapsule_IsValid(capsule, "dltensor") == 0)
    throw InputError("an object whose __dlpack__ gives no tensor that nobody has taken yet");
  return take(static_cast<dlpack::Managed*>(taken("dltensor", "used_dltensor")));
}

/// A format of the buffer protocol for one number. Sizes are the machine's: every x86-64 Linux has these.
DType dtype_of_format(const std::string& format) {
  static const std::map<std::string, DType> formats = {
      {"?", DType::boolean}, {"b", DType::i8},  {"h", DType::i16}, {"i", DType::i32}, {"l", DType::i64},
      {"q", DType::i64},     {"B", DType::u8},  {"H", DType::u16}, {"I", DType::u32}, {"L", DType::u64},
      {"Q", DType::u64},     {"e", DType::f16}, {"f", DType::f32}, {"d", DType::f64}};
  const bool marked = format.size() > 1 && (format[0] == '@' || format[0] == '=' || format[0] == '<');
  const auto found = formats.find(marked ? format.substr(1) : format);
  if (found == formats.end())
    throw InputError(
        "an array whose elements have the format '{}': expected numbers or booleans of this machine", format);
  return found->second;
}

/// Nothing for elements that the object's type has no format for.
std::optional<Array> read_buffer(PyObject* object) {
  const std::shared_ptr<Py_buffer> buffer(new Py_buffer(), [](Py_buffer* held) {
    if (held->obj != nullptr && Py_IsInitialized()) {
      const WithGil gil;
      PyBuffer_Release(held);
    }
    delete held;
  });
  if (PyObject_GetBuffer(object, buffer.get(), PyBUF_STRIDED_RO | PyBUF_FORMAT) != 0) {
    if (PyErr_ExceptionMatches(PyExc_BufferError) == 0) throw PythonError();
    PyErr_Clear();
    return std::nullopt;
  }
  Array array;
  array.dtype = dtype_of_format(buffer->format == nullptr ? "B" : buffer->format);
  array.dims.assign(buffer->shape, buffer->shape + buffer->ndim);
  for (int i = 0; i < buffer->ndim; ++i) {
    if (buffer->strides[i] % buffer->itemsize != 0)
      throw InputError("an array whose stride {} is no multiple of its elements' size", buffer->strides[i]);
    array.strides.push_back(buffer->strides[i] / buffer->itemsize);
  }
  array.data = buffer->buf;
  array.keep_alive = buffer;
  return array;
}

struct Exported {
  dlpack::ManagedVersioned managed;
  Tensor tensor;
  Dims dims;
  Dims strides;
};

const dlpack::ExchangeApi* api_of_type(PyTypeObject* type) {
  static auto& by_type =
      *new std::map<PyTypeObject*, const dlpack::ExchangeApi*>();  // types are kept, see below
  const auto found = by_type.find(type);
  if (found != by_type.end()) return found->second;
  const dlpack::ExchangeApi* api = nullptr;
  PyObject* capsule = PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__dlpack_c_exchange_api__");
  if (capsule != nullptr && PyCapsule_IsValid(capsule, "dlpack_exchange_api") != 0)
    api = static_cast<const dlpack::ExchangeApi*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
  Py_XDECREF(capsule);
  PyErr_Clear();
  while (api != nullptr && api->version.major != dlpack::major_version) api = api->previous;
  if (api != nullptr && api->view_of_object == nullptr) api = nullptr;
  Py_INCREF(reinterpret_cast<PyObject*>(type));  // so that no other type gets its address
  by_type.emplace(type, api);
  return api;
}

const dlpack::ExchangeApi& required(const dlpack::ExchangeApi* api) {
  if (api != nullptr) return *api;
  throw UnsupportedError("this torch has no DLPack exchange API (torch 2.10 is the first that has)");
}

}  // namespace

dlpack::DataType dlpack_type(DType dtype) {
  const auto bits = static_cast<std::uint8_t>(dtype_bits(dtype));
  if (dtype == DType::boolean) return {6, bits, 1};
  if (dtype == DType::bf16) return {4, bits, 1};
  if (is_float(dtype)) return {2, bits, 1};
  if (is_signed_integer(dtype)) return {0, bits, 1};
  if (is_unsigned_integer(dtype)) return {1, bits, 1};
  throw UnsupportedError("a tensor of type {}: other libraries have no name for it", dtype_name(dtype));
}

const dlpack::ExchangeApi* exchange_api(PyObject* object) {
  return api_of_type(Py_TYPE(object));
}

const dlpack::ExchangeApi& required_api(PyObject* object) {
  return required(exchange_api(object));
}

const dlpack::ExchangeApi& torch_api() {
  const Ref torch = Ref::own(PyImport_ImportModule("torch"));
  const Ref tensor = Ref::own(PyObject_GetAttrString(torch.get(), "Tensor"));
  return required(api_of_type(reinterpret_cast<PyTypeObject*>(tensor.get())));
}

dlpack::DlTensor borrow_view(PyObject* object) {
  dlpack::DlTensor view{};
  if (required_api(object).view_of_object(object, &view) != 0) throw PythonError();
  return view;
}

Array borrow_array(const dlpack::ExchangeApi& api, PyObject* object) {
  dlpack::DlTensor tensor{};
  if (api.view_of_object(object, &tensor) != 0) throw PythonError();
  return view_of_tensor(tensor);
}

Array read_array(PyObject* object) {
  if (const dlpack::ExchangeApi* api = exchange_api(object)) {
    Array array = borrow_array(*api, object);
    array.keep_alive = keep(object);
    return array;
  }
  // Arrays of NumPy that cannot be written to are refused by its DLPack, and read by the buffer protocol.
  if (PyObject_CheckBuffer(object) != 0)
    if (std::optional<Array> array = read_buffer(object)) return std::move(*array);
  if (PyObject_HasAttrString(object, "__dlpack__") != 0) return read_capsule(call_dlpack(object).get());
  PyErr_Format(PyExc_TypeError, "expected a tensor (NumPy, or one that speaks DLPack), got %R",
               reinterpret_cast<PyObject*>(Py_TYPE(object)));
  throw PythonError();
}

bool is_dense(const Dims& dims, const Dims& strides) {
  std::int64_t wanted = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (dims[i] == 0) return true;
    if (dims[i] != 1 && strides[i] != wanted) return false;
    wanted *= dims[i];
  }
  return true;
}

Tensor dense_tensor(const Array& array) {
  if (array.device.device_type != dlpack::cpu_device)
    throw InputError("a tensor on a device of DLPack's type {}: expected one in the CPU's memory",
                     array.device.device_type);
  const bool empty = std::find(array.dims.begin(), array.dims.end(), 0) != array.dims.end();
  if (empty) return {array.dtype, array.dims};
  if (is_dense(array.dims, array.strides)) return {array.dtype, array.dims, array.keep_alive, array.data};
  Tensor copy(array.dtype, array.dims);
  const StridedCopy how = {
      .dims = array.dims, .strides = array.strides, .target_strides = dense_strides(array.dims)};
  copy_strided(how, array.data, copy.mutable_data(), dtype_size(array.dtype));
  return copy;
}

dlpack::ManagedVersioned* managed_tensor(Tensor tensor, const Dims& dims, const Dims& strides) {
  auto exported = std::make_unique<Exported>(Exported{{}, std::move(tensor), dims, strides});
  dlpack::ManagedVersioned& managed = exported->managed;
  managed.version = {dlpack::major_version, 0};
  managed.manager_ctx = exported.get();
  managed.deleter = [](dlpack::ManagedVersioned* self) { delete static_cast<Exported*>(self->manager_ctx); };
  const DType dtype = exported->tensor.dtype();
  managed.dl_tensor = {.data = exported->tensor.mutable_data(),
                       .device = {dlpack::cpu_device, 0},
                       .ndim = static_cast<std::int32_t>(exported->dims.size()),
                       .dtype = dlpack_type(dtype),
                       .shape = exported->dims.data(),
                       .strides = exported->strides.data(),
                       .byte_offset = 0};
  return &exported.release()->managed;
}

}  // namespace sylvite::python

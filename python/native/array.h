#pragma once
// Tensors of other libraries, read where they lie, and ours as objects that other libraries read.

#include <cstdint>
#include <memory>

#include "python/native/dlpack.h"
#include "python/native/object.h"
#include "sylvite/tensor.h"

namespace sylvite::python {

/// A tensor in another library's memory.
struct Array {
  DType dtype = DType::f32;
  Dims dims;
  Dims strides;  ///< in elements
  void* data = nullptr;
  dlpack::Device device = {dlpack::cpu_device, 0};
  std::shared_ptr<const void> keep_alive;  ///< nullptr: borrowed from the object
};

/// The functions by which the object's library exchanges tensors; nullptr where it has none of DLPack's major version 1.
/// Found once for each type.
[[nodiscard]] const dlpack::ExchangeApi* exchange_api(PyObject* object);
/// That of torch's tensors. Throws PythonError without torch, UnsupportedError where it is too old.
[[nodiscard]] const dlpack::ExchangeApi& torch_api();

/// The same for a tensor that must have them. Throws UnsupportedError where its library is too old.
[[nodiscard]] const dlpack::ExchangeApi& required_api(PyObject* object);
/// What DLPack says of the tensor, as long as the object and its memory last. Throws as required_api, PythonError.
[[nodiscard]] dlpack::DlTensor borrow_view(PyObject* object);

/// A view that lasts as long as the object and its memory: nothing is counted. Throws PythonError, InputError for a
/// dtype that Sylvite lacks.
[[nodiscard]] Array borrow_array(const dlpack::ExchangeApi& api, PyObject* object);
/// By the exchange API, else __dlpack__, else the buffer protocol. The array keeps its memory. Throws TypeError as a
/// PythonError for other objects, InputError for a dtype that Sylvite lacks.
[[nodiscard]] Array read_array(PyObject* object);

/// As DLPack names it. Throws UnsupportedError for a type that it has no name for.
[[nodiscard]] dlpack::DataType dlpack_type(DType dtype);

[[nodiscard]] bool is_dense(const Dims& dims, const Dims& strides);
/// The elements in row-major order: the array's own where they lie so, else a copy. REQUIRES memory on the CPU.
/// Throws InputError for memory on a device.
[[nodiscard]] Tensor dense_tensor(const Array& array);

/// The tensor as DLPack hands it over; `dims` and `strides` are what the reader sees. The deleter gives it back.
[[nodiscard]] dlpack::ManagedVersioned* managed_tensor(Tensor tensor, const Dims& dims, const Dims& strides);

/// Adds the type `Tensor`: shape, dtype, __dlpack__, __dlpack_device__, the buffer protocol. Throws PythonError.
void add_tensor_type(PyObject* module);
/// A new object of that type. Throws PythonError.
[[nodiscard]] Ref tensor_object(Tensor tensor);

}  // namespace sylvite::python

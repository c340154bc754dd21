#include "python/native/device_run.h"

#include <algorithm>

#include "base/error.h"

namespace sylvite::python {
namespace {

constexpr std::uintptr_t input_alignment = 16;  // see DeviceArguments

cuda::DevicePointer address_of(const dlpack::DlTensor& view) {
  return reinterpret_cast<cuda::DevicePointer>(view.address());
}

cuda::DevicePointer address_of(const Ref& tensor) {
  return address_of(borrow_view(tensor.get()));
}

/// The arguments of DeviceTools::allocate.
Ref allocation(const DeviceTools& tools, DType dtype, const Dims& dims, const Dims& strides) {
  return Ref::own(
      PyTuple_Pack(3, from_integers(dims).get(), from_integers(strides).get(), tools.dtypes.at(dtype).get()));
}

Ref call_python(const Ref& function, const Ref& arguments) {
  return Ref::own(PyObject_Call(function.get(), arguments.get(), nullptr));
}

}  // namespace

DeviceTools read_device_tools(PyObject* tuple) {
  const std::vector<PyObject*> items = items_of(tuple);
  DeviceTools tools{
      Ref::share(items.at(0)), Ref::share(items.at(1)), Ref::share(items.at(2)), Ref::share(items.at(3)), {}};
  PyObject *name = nullptr, *dtype = nullptr;
  for (Py_ssize_t place = 0; PyDict_Next(items.at(4), &place, &name, &dtype) != 0;)
    tools.dtypes[parse_dtype(to_text(name))] = Ref::share(dtype);
  return tools;
}

cuda::StreamHandle current_stream(const dlpack::ExchangeApi& api) {
  void* stream = nullptr;
  if (api.current_stream == nullptr)
    throw UnsupportedError("this torch does not tell its stream (DLPack's current_work_stream)");
  if (api.current_stream(dlpack::cuda_device, 0, &stream) != 0) throw PythonError();
  return static_cast<cuda::StreamHandle>(stream);
}

DeviceRun::DeviceRun(const DeviceTools& tools, CapturedProgram& program, const std::vector<PyObject*>& items,
                     const dlpack::ExchangeApi& api)
    : tools_(tools),
      program_(program),
      stream_(current_stream(api)),
      is_captured_(cuda::is_capturing(stream_)) {
  program_.device.is_captured = program_.device.is_captured || is_captured_;
  read_inputs(items);
  allocate_results();
  allocate_work();
  const WithoutGil others_run;
  program_.built.program.run_on(stream_, arguments_);
}

void DeviceRun::read_inputs(const std::vector<PyObject*>& items) {
  arguments_.inputs.reserve(program_.ports.reads.size());
  for (const CapturedRead& read : program_.ports.reads) {
    if (std::ranges::find(read.dims, 0) != read.dims.end()) {  // torch has no memory for what is empty
      arguments_.inputs.push_back(0);
      continue;
    }
    PyObject* item = items.at(read.input);
    const dlpack::DlTensor view = borrow_view(item);
    if (is_in_place(read, view, dlpack::cuda_device) && address_of(view) % input_alignment == 0) {
      arguments_.inputs.push_back(address_of(view));
      continue;
    }
    const Ref strides = from_integers(read.strides);
    Ref placed = Ref::own(PyObject_CallFunctionObjArgs(tools_.place.get(), item, strides.get(), nullptr));
    const dlpack::DlTensor placed_view = borrow_view(placed.get());
    if (!is_in_place(read, placed_view, dlpack::cuda_device)) {
      throw InputError("input {}: its type or shape differs from what was captured, {}", read.input,
                       make_type(read.dtype, read.dims).to_string());
    }
    arguments_.inputs.push_back(address_of(placed_view));
    kept_.push_back(std::move(placed));
  }
}

void DeviceRun::allocate_results() {
  std::vector<Ref>& makes = program_.device.makes;
  if (makes.empty())
    for (const TorchOutput& output : program_.ports.outputs)
      makes.push_back(
          allocation(tools_, output.tensor.type.dtype, output.tensor.type.dims(), output.tensor.strides));
  arguments_.outputs.resize(program_.ports.outputs.size());
  for (std::size_t i = 0; i < makes.size(); ++i) {
    values_.push_back(call_python(tools_.allocate, makes[i]));
    arguments_.outputs.at(static_cast<std::size_t>(program_.ports.outputs[i].graph_output)) =
        address_of(values_.back());
  }
}

/// Memory for one run, so that runs on several streams never share it. A recorded run needs its own for longer: one for
/// each stream, on which runs follow each other.
void DeviceRun::allocate_work() {
  const auto bytes = static_cast<std::int64_t>(program_.built.program.work_bytes());
  if (bytes == 0) return;
  const bool is_recorded = program_.built.setup->config.runtime_cuda_graph && !is_captured_;
  Ref memory = is_recorded ? program_.device.work[stream_] : Ref();
  if (!memory) memory = call_python(tools_.allocate, allocation(tools_, DType::u8, {bytes}, {1}));
  if (is_recorded) program_.device.work[stream_] = memory;
  arguments_.work = address_of(memory);
  kept_.push_back(std::move(memory));
}

void DeviceRun::write(std::size_t number, PyObject* input) const {
  const TorchOutput& output = program_.ports.outputs.at(number);
  const dlpack::DlTensor target = borrow_view(input);
  const TensorType& type = output.tensor.type;
  const CapturedRead dense = {0, type.dtype, type.dims(), output.tensor.strides, {}, dlpack_type(type.dtype)};
  if (is_in_place(dense, target, dlpack::cuda_device)) {
    cuda::copy_bytes(address_of(target), arguments_.outputs.at(static_cast<std::size_t>(output.graph_output)),
                     static_cast<std::size_t>(type.byte_size()), stream_);
    return;
  }
  (void)Ref::own(PyObject_CallFunctionObjArgs(tools_.write.get(), input, values_.at(number).get(), nullptr));
}

}  // namespace sylvite::python

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
  DeviceTools tools{PyObject_IsTrue(items.at(0)) == 1,
                    Ref::share(items.at(1)),
                    Ref::share(items.at(2)),
                    Ref::share(items.at(3)),
                    Ref::share(items.at(4)),
                    {},
                    Ref::share(items.at(6))};
  PyObject *name = nullptr, *dtype = nullptr;
  for (Py_ssize_t place = 0; PyDict_Next(items.at(5), &place, &name, &dtype) != 0;)
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

DeviceRun::DeviceRun(const DeviceTools& tools, CapturedProgram& program, PyObject* list,
                     const std::set<std::size_t>& kept, const dlpack::ExchangeApi& api)
    : tools_(tools),
      program_(program),
      stream_(current_stream(api)),
      is_captured_(cuda::is_capturing(stream_)),
      values_(program.built.program.bindings().results.size()) {
  program_.device.is_captured = program_.device.is_captured || is_captured_;
  arguments_.outputs.resize(values_.size());
  read_inputs(list);
  tools_.lets_go && !program_.built.setup->config.runtime_cuda_graph ? run_in_turns(list, kept) : run_whole();
}

void DeviceRun::read_inputs(PyObject* list) {
  const std::vector<PyObject*> items = items_of(list);
  arguments_.inputs.reserve(program_.ports.reads.size());
  copies_.resize(program_.ports.reads.size());
  for (std::size_t i = 0; i < program_.ports.reads.size(); ++i) {
    const CapturedRead& read = program_.ports.reads[i];
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
    copies_[i] = Ref::own(PyObject_CallFunctionObjArgs(tools_.place.get(), item, strides.get(), nullptr));
    const dlpack::DlTensor placed = borrow_view(copies_[i].get());
    if (!is_in_place(read, placed, dlpack::cuda_device)) {
      throw InputError("input {}: its type or shape differs from what was captured, {}", read.input,
                       make_type(read.dtype, read.dims).to_string());
    }
    arguments_.inputs.push_back(address_of(placed));
  }
  place_overwrites(items);
}

/// Results that lie in inputs, or may where these are where the program reads them. Kernels were loaded before: none fails that
/// would have to leave inputs as they were.
void DeviceRun::place_overwrites(const std::vector<PyObject*>& items) {
  const auto place = [&](const Overwrite& each) {
    PyObject* item = items.at(program_.ports.reads[each.input].input);
    values_[each.output] = Ref::share(copies_[each.input] ? copies_[each.input].get() : item);
  };
  for (const Overwrite& each : program_.written)
    if (arguments_.inputs[each.input] != 0) place(each);
  for (const Overwrite& each : program_.overwrites)
    if (arguments_.inputs[each.input] != 0 && !copies_[each.input]) place(each);
}

void DeviceRun::run_whole() {
  for (std::size_t i = 0; i < values_.size(); ++i) arguments_.outputs[i] = take_output(i);
  take_work();
  const WithoutGil others_run;
  program_.built.program.run_on(stream_, arguments_);
}

void DeviceRun::run_in_turns(PyObject* list, const std::set<std::size_t>& kept) {
  RunMemory memory;
  if (const std::size_t bytes = program_.built.program.work_bytes(true))
    memory.work = take_bytes(work_, bytes);
  memory.take_output = [&](std::size_t output) {
    const WithGil allocates;
    return take_output(output);
  };
  memory.take_value = [&](std::size_t value, std::size_t bytes) {
    const WithGil allocates;
    return take_bytes(between_[value], bytes);
  };
  memory.drop_value = [&](std::size_t value) {
    const WithGil frees;
    between_.erase(value);
  };
  memory.drop_input = [&](std::size_t input) {
    if (kept.contains(program_.ports.reads[input].input)) return;
    const WithGil frees;
    drop_input(list, input);
  };
  try {
    const WithoutGil others_run;
    program_.built.program.run_in_turns(stream_, arguments_.inputs, memory);
  } catch (const Error&) {
    if (!has_let_go_) throw;
    set_python_error();
    throw PythonError();
  }
}

/// The tensor of a result of the program, allocated when it is first asked for.
cuda::DevicePointer DeviceRun::take_output(std::size_t output) {
  std::vector<Ref>& makes = program_.device.makes;
  if (makes.empty()) {
    makes.resize(values_.size());
    for (const TorchOutput& each : program_.ports.outputs)
      makes.at(static_cast<std::size_t>(each.graph_output)) =
          allocation(tools_, each.tensor.type.dtype, each.tensor.type.dims(), each.tensor.strides);
  }
  if (!values_.at(output)) values_[output] = call_python(tools_.allocate, makes[output]);
  return address_of(values_[output]);
}

cuda::DevicePointer DeviceRun::take_bytes(Ref& place, std::size_t bytes) {
  if (!place)
    place =
        call_python(tools_.allocate, allocation(tools_, DType::u8, {static_cast<std::int64_t>(bytes)}, {1}));
  return address_of(place);
}

void DeviceRun::drop_input(PyObject* list, std::size_t input) {
  copies_[input] = Ref();
  const auto item = static_cast<Py_ssize_t>(program_.ports.reads[input].input);
  has_let_go_ = true;
  if (PyList_SetItem(list, item, Py_NewRef(Py_None)) != 0) throw PythonError();
}

/// Memory for one run, so that runs on several streams never share it. A recorded run needs its own for longer: one for
/// each stream, on which runs follow each other.
void DeviceRun::take_work() {
  const std::size_t bytes = program_.built.program.work_bytes();
  if (bytes == 0) return;
  const bool is_recorded = program_.built.setup->config.runtime_cuda_graph && !is_captured_;
  arguments_.work = take_bytes(is_recorded ? program_.device.work[stream_] : work_, bytes);
}

Ref DeviceRun::value(std::size_t number) const {
  return values_.at(static_cast<std::size_t>(program_.ports.outputs.at(number).graph_output));
}

void DeviceRun::write(std::size_t number, PyObject* input) const {
  const TorchOutput& output = program_.ports.outputs.at(number);
  const Ref made = value(number);
  const dlpack::DlTensor target = borrow_view(input);
  if (borrow_view(made.get()).address() == target.address()) return;  // it was written there
  const TensorType& type = output.tensor.type;
  const CapturedRead dense = {0, type.dtype, type.dims(), output.tensor.strides, {}, dlpack_type(type.dtype)};
  if (is_in_place(dense, target, dlpack::cuda_device)) {
    cuda::copy_bytes(address_of(target), address_of(made), static_cast<std::size_t>(type.byte_size()),
                     stream_);
    return;
  }
  (void)Ref::own(PyObject_CallFunctionObjArgs(tools_.write.get(), input, made.get(), nullptr));
}

}  // namespace sylvite::python

#include "python/native/host_run.h"

#include <cstring>

namespace sylvite::python {
namespace {

std::vector<Tensor> inputs_of(const CapturedProgram& program, const std::vector<PyObject*>& items) {
  std::vector<Tensor> inputs;
  inputs.reserve(program.reads.size());
  for (const CapturedRead& read : program.reads) {
    PyObject* item = items.at(read.input);
    const dlpack::DlTensor view = borrow_view(item);
    inputs.push_back(is_in_place(read, view, dlpack::cpu_device)
                         ? Tensor(read.dtype, read.stored, nullptr, view.address())
                         : read_input(read, borrow_array(required_api(item), item)));
  }
  return inputs;
}

Tensor copy_of(const Tensor& tensor) {
  Tensor copy(tensor.dtype(), tensor.dims());
  std::memcpy(copy.mutable_data(), tensor.data(), static_cast<std::size_t>(copy.byte_size()));
  return copy;
}

}  // namespace

HostRun::HostRun(CapturedProgram& program, const std::vector<PyObject*>& items,
                 const dlpack::ExchangeApi& api)
    : program_(program), api_(api) {
  const std::vector<Tensor> inputs = inputs_of(program, items);
  const WithoutGil others_run;
  outputs_ = program.built.program.run(inputs);
  for (std::size_t i = 0; i < outputs_.size(); ++i)
    if (!program.owns[i]) outputs_[i] = copy_of(outputs_[i]);
}

Ref HostRun::value(std::size_t number) const {
  const TorchOutput& output = program_.outputs.at(number);
  const Tensor& value = outputs_.at(static_cast<std::size_t>(output.graph_output));
  dlpack::ManagedVersioned* managed = managed_tensor(value, output.tensor.type.dims(), output.tensor.strides);
  void* object = nullptr;
  if (api_.object_from_managed(managed, &object) != 0) {
    managed->deleter(managed);
    throw PythonError();
  }
  return Ref::own(static_cast<PyObject*>(object));
}

void HostRun::write(std::size_t number, PyObject* input) const {
  const TorchOutput& output = program_.outputs.at(number);
  write_back(outputs_.at(static_cast<std::size_t>(output.graph_output)), output.tensor,
             borrow_array(required_api(input), input));
}

}  // namespace sylvite::python

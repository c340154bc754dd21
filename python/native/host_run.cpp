#include "python/native/host_run.h"

#include <algorithm>
#include <cstring>

#include "frontend/values/copy_of.h"

namespace sylvite::python {
namespace {

/// What lies where it lay at the last call, as parameters do, is as it was then. Returns the numbers of those that were copied.
std::vector<std::size_t> take_inputs(CapturedProgram& program, const std::vector<PyObject*>& items) {
  std::vector<std::size_t> copied;
  for (std::size_t i = 0; i < program.ports.reads.size(); ++i) {
    const CapturedRead& read = program.ports.reads[i];
    Tensor& given = program.given[i];
    PyObject* item = items.at(read.input);
    const dlpack::DlTensor view = borrow_view(item);
    if (!is_in_place(read, view, dlpack::cpu_device)) {
      given = read_input(read, borrow_array(required_api(item), item));
      copied.push_back(i);
    } else if (given.data() != view.address()) {
      given = Tensor(read.dtype, read.stored, nullptr, view.address());
    }
  }
  return copied;
}

/// Without those whose input was copied, and none at the first run: a kernel that fails leaves inputs as they were.
std::vector<Overwrite> in_place(const CapturedProgram& program, const std::vector<std::size_t>& copied) {
  std::vector<Overwrite> found;
  if (!program.has_run) return found;
  found = program.overwrites;
  if (!copied.empty())
    std::erase_if(
        found, [&](const Overwrite& each) { return std::ranges::find(copied, each.input) != copied.end(); });
  return found;
}

}  // namespace

HostRun::HostRun(CapturedProgram& program, const std::vector<PyObject*>& items,
                 const dlpack::ExchangeApi& api)
    : program_(program), api_(api) {
  const std::vector<std::size_t> copied = take_inputs(program, items);
  const WithoutGil others_run;
  outputs_ = program.built.program.run(program.given, nullptr, in_place(program, copied));
  program.has_run = true;
  for (std::size_t i = 0; i < outputs_.size(); ++i)
    if (!program.owns[i]) outputs_[i] = copy_of(outputs_[i]);
  for (const std::size_t number : copied) program.given[number] = Tensor();
}

Ref HostRun::value(std::size_t number) const {
  const TorchOutput& output = program_.ports.outputs.at(number);
  const Tensor& value = outputs_.at(static_cast<std::size_t>(output.graph_output));
  const CapturedRead& lies = program_.lies.at(number);
  dlpack::ManagedVersioned* managed = managed_tensor(value, lies.dims, lies.strides);
  void* object = nullptr;
  if (api_.object_from_managed(managed, &object) != 0) {
    managed->deleter(managed);
    throw PythonError();
  }
  return Ref::own(static_cast<PyObject*>(object));
}

void HostRun::write(std::size_t number, PyObject* input) const {
  const TorchOutput& output = program_.ports.outputs.at(number);
  const Tensor& value = outputs_.at(static_cast<std::size_t>(output.graph_output));
  const dlpack::DlTensor view = borrow_view(input);
  if (view.address() == value.data()) return;  // it was written there
  if (is_in_place(program_.lies.at(number), view, dlpack::cpu_device))
    std::memcpy(view.address(), value.data(), static_cast<std::size_t>(value.byte_size()));
  else
    write_back(value, output.tensor, borrow_array(required_api(input), input));
}

}  // namespace sylvite::python

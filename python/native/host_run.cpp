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

/// Small results in blocks, others where inputs are that they are written over. Not those whose input was copied, and none at
/// the first run: a kernel that fails leaves inputs as they were.
void place_results(CapturedProgram& program, const std::vector<std::size_t>& copied) {
  HostResults& results = program.results;
  for (std::size_t i = 0; i < results.blocks.size(); ++i) {
    if (results.blocks[i] == nullptr) continue;
    results.taken[i] = results.blocks[i]->take();
    results.places[static_cast<std::size_t>(program.ports.outputs[i].graph_output)] =
        results.taken[i]->data();
  }
  for (const Overwrite& each : program.overwrites) {
    void* place = program.given[each.input].mutable_data();
    const bool may_lie_there =
        program.has_run && is_aligned(place) && std::ranges::find(copied, each.input) == copied.end();
    results.places[each.output] = may_lie_there ? place : nullptr;
  }
}

/// Is the result the program's own, the only one there, and small?
bool lies_in_block(const CapturedProgram& program, const TorchOutput& output) {
  if (output.graph_output < 0) return false;
  const auto number = static_cast<std::size_t>(output.graph_output);
  const Bindings& bindings = program.built.program.bindings();
  return has_own_memory(bindings, number) &&
         static_cast<std::size_t>(bindings.results[number].byte_size()) <= ResultBlocks::most_bytes &&
         std::ranges::find(program.overwrites, number, &Overwrite::output) == program.overwrites.end() &&
         std::ranges::count(program.ports.outputs, output.graph_output, &TorchOutput::graph_output) == 1;
}

}  // namespace

void make_result_blocks(CapturedProgram& program) {
  HostResults& results = program.results;
  const std::vector<TorchOutput>& outputs = program.ports.outputs;
  results.blocks.resize(outputs.size());
  results.taken.resize(outputs.size());
  results.places.resize(program.owns.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!lies_in_block(program, outputs[i])) continue;
    const auto number = static_cast<std::size_t>(outputs[i].graph_output);
    const CapturedRead& lies = program.lies[i];
    results.blocks[i] = std::make_shared<ResultBlocks>(
        static_cast<std::size_t>(program.built.program.bindings().results[number].byte_size()),
        ResultView{lies.dims, lies.strides, lies.type});
  }
}

HostRun::HostRun(CapturedProgram& program, const std::vector<PyObject*>& items,
                 const dlpack::ExchangeApi& api)
    : program_(program), results_(program.results), api_(api) {
  const std::vector<std::size_t> copied = take_inputs(program, items);
  const WithoutGil others_run;
  place_results(program, copied);
  program.built.program.run_at(program.given, results_.places, results_.values);
  program.has_run = true;
  for (std::size_t i = 0; i < results_.values.size(); ++i)
    if (!program.owns[i]) results_.values[i] = copy_of(results_.values[i]);
  for (const std::size_t number : copied) program.given[number] = Tensor();
}

HostRun::~HostRun() {
  for (Tensor& value : results_.values) value = Tensor();
  for (ResultBlocks::Taken& block : results_.taken) block.reset();
}

Tensor HostRun::tensor_of(std::size_t output) const {
  if (results_.places[output] == nullptr) return results_.values[output];
  const TensorType& type = program_.built.program.bindings().results[output];
  return {type.dtype, type.dims(), nullptr, results_.places[output]};
}

Ref HostRun::value(std::size_t number) {
  const TorchOutput& output = program_.ports.outputs.at(number);
  const CapturedRead& lies = program_.lies.at(number);
  ResultBlocks::Block* block = results_.taken[number].release();
  dlpack::ManagedVersioned* managed =
      block != nullptr
          ? &block->managed
          : managed_tensor(tensor_of(static_cast<std::size_t>(output.graph_output)), lies.dims, lies.strides);
  void* object = nullptr;
  if (api_.object_from_managed(managed, &object) != 0) {
    managed->deleter(managed);
    throw PythonError();
  }
  return Ref::own(static_cast<PyObject*>(object));
}

void HostRun::write(std::size_t number, PyObject* input) const {
  const TorchOutput& output = program_.ports.outputs.at(number);
  const Tensor value = tensor_of(static_cast<std::size_t>(output.graph_output));
  const dlpack::DlTensor view = borrow_view(input);
  if (view.address() == value.data()) return;  // it was written there
  if (is_in_place(program_.lies.at(number), view, dlpack::cpu_device))
    std::memcpy(view.address(), value.data(), static_cast<std::size_t>(value.byte_size()));
  else
    write_back(value, output.tensor, borrow_array(required_api(input), input));
}

}  // namespace sylvite::python

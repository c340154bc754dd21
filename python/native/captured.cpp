#include "python/native/captured.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "frontend/torch/memory_order.h"
#include "frontend/values/size_facts.h"
#include "frontend/values/strided.h"
#include "runtime/kernel_menu.h"
#include "runtime/open_kernels.h"
#include "runtime/symbolic_plans.h"
#include "schedules/space.h"

namespace sylvite::python {
namespace {

bool lies_as(const Array& array, const Dims& strides) {
  for (std::size_t d = 0; d < strides.size(); ++d)
    if (array.dims[d] != 1 && array.strides[d] != strides[d]) return false;
  return true;
}

/// The constant's memory in order.
Tensor constant_of(const Array& array) {
  Array ordered = array;
  const std::vector<std::int64_t> order = memory_order(array.dims, array.strides);
  ordered.dims = in_order(array.dims, order);
  ordered.strides = in_order(array.strides, order);
  return dense_tensor(ordered);
}

TorchImportOptions import_options_of(const CapturedGraph& graph, const SymbolValues& sizes,
                                     const std::map<std::size_t, GivenParameter>& parameters,
                                     const Machine& machine) {
  TorchImportOptions options;
  options.keep_gradients = has_gradient_templates(machine);
  options.sizes = sizes;
  options.constants = graph.held;
  for (const auto& [number, given] : parameters)
    options.constants[graph.inputs.at(number).name] = constant_of(given.array);
  return options;
}

CapturedRead read_of(const TorchTensor& tensor, std::size_t input, Dims stored) {
  return {.input = input,
          .dtype = tensor.type.dtype,
          .dims = tensor.type.dims(),
          .strides = tensor.strides,
          .stored = std::move(stored),
          .type = dlpack_type(tensor.type.dtype)};
}

std::vector<CapturedRead> lies_of(const std::vector<TorchOutput>& outputs) {
  std::vector<CapturedRead> lies(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].graph_output >= 0) lies[i] = read_of(outputs[i].tensor, 0, {});
  return lies;
}

/// Per input of the program.
std::vector<CapturedRead> reads_of(const CapturedGraph& graph, const TorchGraph& torch) {
  std::map<std::string, std::size_t> by_name;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    if (!graph.inputs[i].name.empty()) by_name[graph.inputs[i].name] = i;
  std::vector<CapturedRead> reads(torch.graph.inputs.size());
  for (const TorchInput& input : torch.inputs) {
    if (input.graph_input < 0) continue;
    const auto number = static_cast<std::size_t>(input.graph_input);
    reads.at(number) =
        read_of(input.tensor, by_name.at(input.name), torch.graph.type(torch.graph.inputs[number]).dims());
  }
  return reads;
}

/// torch's guards say which sizes the text holds for; what does not hold beside a size is refused there.
ModelSizes open_sizes(const CapturedGraph& graph) {
  ModelSizes model;
  for (const CapturedSymbol& symbol : graph.symbols)
    model.symbols.push_back({.name = symbol.name, .range = {}});
  return model;
}

bool has_types(const std::vector<Port>& ports, const std::vector<ValueId>& values, const Graph& graph) {
  return std::ranges::equal(ports, values, [&](const Port& port, ValueId value) {
    const TensorType& type = graph.type(value);
    return port.type.dims() == type.dims() && port.type.dtype == type.dtype;
  });
}

/// The plan of `graph` as plans at other sizes, with the same parameters, tell it; nullopt where they do not.
std::optional<Imported> known_at(OpenCapture& open, const Sizes& sizes,
                                 const std::vector<TakenParameter>& taken, const Graph& graph) {
  if (open.model.plans == nullptr || open.taken != taken) {
    open.model.plans = std::make_shared<SymbolicPlans>(open.model.parsed.sizes);
    open.taken = taken;
  }
  std::optional<Imported> known = bind_known_sizes(open.model, sizes);
  const bool fits = known && has_types(known->plan->inputs, graph.inputs, graph) &&
                    has_types(known->plan->outputs, graph.outputs, graph);
  return fits ? std::move(known) : std::nullopt;
}

std::vector<bool> owned_outputs(const Program& program) {
  const std::vector<Location>& places = program.bindings().outputs;
  std::vector<bool> owns;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const bool is_own =
        places[i].kind == BufferKind::output && places[i].number == static_cast<std::int64_t>(i);
    owns.push_back(is_own ||
                   places[i].kind == BufferKind::arena);  // what lies in the arena is copied by the run
  }
  return owns;
}

}  // namespace

SymbolValues by_name(const CapturedGraph& graph, const Sizes& sizes) {
  SymbolValues values;
  for (std::size_t i = 0; i < sizes.size(); ++i) values[graph.symbols[i].name] = sizes[i];
  return values;
}

std::unique_ptr<OpenCapture> open_capture(const CapturedGraph& graph,
                                          const std::shared_ptr<const Setup>& setup) {
  if (setup->config.open_kernels != AutoOff::automatic || graph.symbols.empty()) return nullptr;
  auto open = std::make_unique<OpenCapture>();
  open->model.setup = setup;
  open->model.parsed.sizes = open_sizes(graph);
  open->model.menu = std::make_shared<KernelMenu>(setup);
  return open;
}

ChosenCapture choose_captured(const CapturedGraph& graph, const Sizes& sizes,
                              const std::map<std::size_t, GivenParameter>& parameters,
                              const std::shared_ptr<const Setup>& setup, OpenCapture* open) {
  const auto import_at = [&](const Sizes& at) {
    return import_torch(graph.text, import_options_of(graph, by_name(graph, at), parameters, setup->machine));
  };
  const auto load_at = [&](const Sizes& at) {
    NotedSizeFacts facts;
    Imported imported = load_graph_at(at, import_at(at).graph, setup);
    imported.facts = facts.take();
    return imported;
  };
  NotedSizeFacts facts;
  TorchGraph torch = import_at(sizes);
  ChosenCapture capture;
  capture.reads = reads_of(graph, torch);
  capture.outputs = std::move(torch.outputs);
  for (const auto& [number, given] : parameters) capture.taken.push_back({number, given.data, given.version});
  std::optional<Imported> known = open ? known_at(*open, sizes, capture.taken, torch.graph) : std::nullopt;
  capture.imported = known ? std::move(*known) : load_graph_at(sizes, std::move(torch.graph), setup);
  if (!known) capture.imported.facts = facts.take();
  if (open != nullptr && !known) take_open_kernels(open->model, capture.imported, load_at);
  capture.chosen = choose_candidates(capture.imported);
  return capture;
}

CapturedProgram build_captured(const ChosenCapture& capture, const Relatives& relatives,
                               const std::stop_token& stop) {
  CapturedProgram made{.built = build_program(capture.imported, capture.chosen, relatives, stop),
                       .reads = capture.reads,
                       .given = std::vector<Tensor>(capture.reads.size()),
                       .taken = capture.taken,
                       .outputs = capture.outputs,
                       .lies = lies_of(capture.outputs),
                       .owns = {},
                       .device = {}};
  made.owns = owned_outputs(made.built.program);
  made.built.program.prepare();
  return made;
}

bool is_in_place(const CapturedRead& read, const dlpack::DlTensor& tensor, std::int32_t device_type) {
  const dlpack::DataType& type = tensor.dtype;
  if (type.code != read.type.code || type.bits != read.type.bits || type.lanes != 1) return false;
  if (tensor.device.device_type != device_type || tensor.ndim != static_cast<int>(read.dims.size()))
    return false;
  if (tensor.ndim > 0 && tensor.strides == nullptr) return false;
  if (tensor.address() == nullptr) return false;  // empty, or zeros for which torch has no memory
  for (int d = 0; d < tensor.ndim; ++d) {
    const auto axis = static_cast<std::size_t>(d);
    if (tensor.shape[d] != read.dims[axis]) return false;
    if (tensor.shape[d] != 1 && tensor.strides[d] != read.strides[axis]) return false;
  }
  return true;
}

Tensor read_input(const CapturedRead& read, const Array& array) {
  if (array.dtype != read.dtype || array.dims != read.dims) {
    throw InputError("input {}: got {}, expected {}", read.input,
                     make_type(array.dtype, array.dims).to_string(),
                     make_type(read.dtype, read.dims).to_string());
  }
  if (array.device.device_type != dlpack::cpu_device)
    throw InputError("input {}: on a device, expected the CPU's memory", read.input);
  if (array.data != nullptr && lies_as(array, read.strides))
    return {read.dtype, read.stored, array.keep_alive, array.data};
  Tensor copy(read.dtype, read.stored);
  if (copy.size() == 0) return copy;
  if (array.data == nullptr) {
    std::memset(copy.mutable_data(), 0, static_cast<std::size_t>(copy.byte_size()));
    return copy;
  }
  const StridedCopy how = {.dims = array.dims, .strides = array.strides, .target_strides = read.strides};
  copy_strided(how, array.data, copy.mutable_data(), dtype_size(read.dtype));
  return copy;
}

void write_back(const Tensor& value, const TorchTensor& from, const Array& target) {
  if (target.dims != from.type.dims() || target.dtype != value.dtype()) {
    throw InternalError("a write of {} over {}", from.type.to_string(),
                        make_type(target.dtype, target.dims).to_string());
  }
  if (value.size() == 0) return;
  if (is_dense(target.dims, target.strides) && is_dense(target.dims, from.strides)) {
    std::memcpy(target.data, value.data(), static_cast<std::size_t>(value.byte_size()));
    return;
  }
  const StridedCopy how = {.dims = target.dims, .strides = from.strides, .target_strides = target.strides};
  copy_strided(how, value.data(), target.data, dtype_size(value.dtype()));
}

}  // namespace sylvite::python

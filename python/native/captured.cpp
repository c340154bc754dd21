#include "python/native/captured.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "frontend/graph/made_weights.h"
#include "frontend/torch/memory_order.h"
#include "frontend/torch/torch_text.h"
#include "frontend/values/size_facts.h"
#include "frontend/values/strided.h"
#include "runtime/kernel_menu.h"
#include "runtime/open_kernels.h"
#include "runtime/shared_kernels.h"
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

/// Of an import: what the graph holds, and parameters.
Constants constants_of(const CapturedGraph& graph, const std::map<std::size_t, GivenParameter>& parameters) {
  Constants constants = graph.held;
  for (const auto& [number, given] : parameters)
    constants[graph.inputs.at(number).name] = constant_of(given.array);
  return constants;
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

/// Extents and strides that the text says, but numbers, each once: extents first, as strides are products of these.
std::vector<Extent> sizes_said(const TorchText& text) {
  std::vector<Extent> said;
  const auto add = [&](const std::vector<Extent>& extents) {
    for (const Extent& each : extents)
      if (!each.is_known() && std::ranges::find(said, each) == said.end()) said.push_back(each);
  };
  for (const TorchTextInput& input : text.inputs) add(input.type.shape);
  for (const TorchNode& node : text.nodes)
    for (const TorchType& type : node.types) add(type.shape);
  for (const TorchTextInput& input : text.inputs) add(input.type.strides);
  return said;
}

/// Those of open sizes alone.
std::vector<Extent> said_of(const OpenCapture& open) {
  std::vector<Extent> said = open.said;
  const auto is_open = [&](const std::string& name) {
    return std::ranges::find(open.model.parsed.sizes.symbols, name, &SizeSymbol::name) !=
           open.model.parsed.sizes.symbols.end();
  };
  std::erase_if(said, [&](const Extent& each) { return !std::ranges::all_of(each.symbols(), is_open); });
  return said;
}

std::map<std::size_t, std::set<std::string>> extents_of_parameters(const CapturedGraph& graph,
                                                                   const TorchText& text) {
  std::map<std::string, std::set<std::string>> by_name;
  for (const TorchTextInput& input : text.inputs)
    for (const Extent& extent : input.type.shape)
      for (const std::string& symbol : extent.symbols()) by_name[input.name].insert(symbol);
  std::map<std::size_t, std::set<std::string>> extents;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    if (graph.inputs[i].may_be_constant()) extents[i] = by_name[graph.inputs[i].name];
  return extents;
}

/// torch's guards say which sizes the text holds for; what does not hold beside a size is refused there.
ModelSizes open_sizes(const CapturedGraph& graph, const OpenCapture& open) {
  ModelSizes model;
  for (std::size_t i = 0; i < graph.symbols.size(); ++i)
    if (!open.held[i]) model.symbols.push_back({.name = graph.symbols[i].name, .range = {}});
  return model;
}

/// From here on plans have these parameters' values, and the extents of these are no open sizes.
void take_parameters(OpenCapture& open, const CapturedGraph& graph, const Sizes& sizes,
                     const std::map<std::size_t, GivenParameter>& parameters,
                     const std::vector<TakenParameter>& taken) {
  if (open.model.plans != nullptr && *open.taken == taken) return;
  std::vector<std::optional<std::int64_t>> held(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto has_extent = [&](const TakenParameter& each) {
      return open.extents.at(each.input).contains(graph.symbols[i].name);
    };
    if (std::ranges::any_of(taken, has_extent)) held[i] = sizes[i];
  }
  if (open.model.menu == nullptr || open.held != held) {
    open.held = std::move(held);
    open.model.parsed.sizes = open_sizes(graph, open);
    open.model.menu = std::make_shared<KernelMenu>(open.model.setup);
  }
  const std::vector<Extent> said = said_of(open);
  open.model.plans = std::make_shared<SymbolicPlans>(open.model.parsed.sizes, said);
  open.ports = OpenPorts(fit_symbols(open.model.parsed.sizes), said);
  open.taken = std::make_shared<const std::vector<TakenParameter>>(taken);
  open.constants = constants_of(graph, parameters);
  open.model.made = std::make_shared<MadeWeights>();
  open.alike.forget();
}

std::vector<TakenParameter> taken_of(const std::map<std::size_t, GivenParameter>& parameters) {
  std::vector<TakenParameter> taken;
  taken.reserve(parameters.size());
  for (const auto& [number, given] : parameters) taken.push_back({number, given.data, given.version});
  return taken;
}

/// Sizes of the graph as the model has them.
Sizes without_held(const OpenCapture& open, const Sizes& sizes) {
  Sizes rest;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (!open.held[i]) rest.push_back(sizes[i]);
  return rest;
}

Sizes with_held(const OpenCapture& open, const Sizes& rest) {
  Sizes sizes;
  auto next = rest.begin();
  for (const std::optional<std::int64_t>& number : open.held) sizes.push_back(number ? *number : *next++);
  return sizes;
}

bool fits(const CapturedPorts& ports, const std::vector<TensorType>& inputs,
          const std::vector<TensorType>& results) {
  const auto is_read = [](const CapturedRead& read, const TensorType& input) {
    return read.dtype == input.dtype && read.stored == input.dims();
  };
  const auto is_returned = [&](const TorchOutput& output) {
    if (output.graph_output < 0) return true;
    const TensorType& type = results.at(static_cast<std::size_t>(output.graph_output));
    return output.tensor.type.dtype == type.dtype &&
           output.tensor.type.element_count() == type.element_count();
  };
  return std::ranges::equal(ports.reads, inputs, is_read) && std::ranges::all_of(ports.outputs, is_returned);
}

std::vector<TensorType> types_of(const std::vector<Port>& ports) {
  std::vector<TensorType> types;
  types.reserve(ports.size());
  for (const Port& port : ports) types.push_back(port.type);
  return types;
}

/// What imports at other sizes tell; false where they do not.
bool choose_known(OpenCapture& open, const Sizes& sizes, const ImportAt& import, ChosenCapture& capture) {
  std::optional<CapturedPorts> ports = open.ports.at(sizes);
  if (!ports) return false;
  std::optional<Imported> imported = bind_known_sizes(open.model, sizes);
  if (!imported || !fits(*ports, types_of(imported->plan->inputs), types_of(imported->plan->outputs)))
    return false;
  const auto& choices = open.known.choices;
  const auto is_chosen = [&](const Kernel& kernel) { return choices.contains(kernel.text); };
  if (std::ranges::all_of(imported->plan->kernels, is_chosen)) {
    capture.chosen = choose_each(*imported, [&](const Kernel& each) { return choices.at(each.text); });
  } else {
    take_told_kernels(open.model, *imported, import);
    capture.chosen = choose_candidates(*imported);
  }
  capture.imported = *std::move(imported);
  capture.ports = *std::move(ports);
  capture.is_told = true;
  return true;
}

std::vector<bool> owned_outputs(const Program& program) {
  const Bindings& bindings = program.bindings();
  std::vector<bool> owns;
  owns.reserve(bindings.outputs.size());
  for (std::size_t i = 0; i < bindings.outputs.size(); ++i)
    owns.push_back(has_own_memory(bindings, i) ||
                   bindings.outputs[i].kind == BufferKind::arena);  // which the run copies
  return owns;
}

CapturedProgram captured_program(Built built, CapturedPorts ports, TakenParameters taken) {
  CapturedProgram made{.built = std::move(built),
                       .ports = std::move(ports),
                       .given = {},
                       .taken = std::move(taken),
                       .lies = {},
                       .owns = {},
                       .device = {}};
  made.given.resize(made.ports.reads.size());
  made.lies = lies_of(made.ports.outputs);
  made.owns = owned_outputs(made.built.program);
  made.built.program.prepare();
  return made;
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
  const TorchText text = read_torch_text(graph.text);
  open->extents = extents_of_parameters(graph, text);
  open->said = sizes_said(text);
  return open;
}

ChosenCapture choose_captured(const CapturedGraph& graph, const Sizes& sizes,
                              const std::map<std::size_t, GivenParameter>& parameters,
                              const std::shared_ptr<const Setup>& setup, OpenCapture* open) {
  std::vector<TakenParameter> taken = taken_of(parameters);
  ChosenCapture capture;
  if (open != nullptr) take_parameters(*open, graph, sizes, parameters, taken);
  capture.taken =
      open != nullptr ? open->taken : std::make_shared<const std::vector<TakenParameter>>(std::move(taken));
  const bool is_open = open != nullptr && !open->model.parsed.sizes.are_fixed();
  const Sizes rest = is_open ? without_held(*open, sizes) : Sizes();
  const auto load_at = [&](const Sizes& at) {
    NotedSizeFacts facts;
    MadeWeights::Import weights(open != nullptr ? open->model.made.get() : nullptr);
    TorchGraph torch = import_torch(
        graph.text, {.sizes = by_name(graph, is_open ? with_held(*open, at) : sizes),
                     .constants = open != nullptr ? open->constants : constants_of(graph, parameters),
                     .overwrites = graph.overwrites,
                     .gradients = gradient_kernels(setup->machine)});
    CapturedPorts ports{reads_of(graph, torch), std::move(torch.outputs)};
    Imported imported = load_graph_at(at, std::move(torch.graph), setup);
    imported.facts = facts.take();
    weights.keep(imported.plan->weights);
    if (is_open) open->ports.learn(at, ports);
    if (at == rest) capture.ports = std::move(ports);
    return imported;
  };
  if (is_open && choose_known(*open, rest, load_at, capture)) return capture;
  capture.imported = load_at(rest);
  if (is_open) take_open_kernels(open->model, capture.imported, load_at);
  capture.chosen = choose_candidates(capture.imported);
  // Where sizes are open, kernels serve other sizes; where they are measured, each its own; and few are compiled soon.
  constexpr std::size_t many = 48;
  const bool may_share = !setup->config.tune_enabled && setup->config.open_kernels == AutoOff::automatic;
  if (!is_open && may_share && capture.imported.plan->kernels.size() >= many)
    share_small_kernels(capture.imported, capture.chosen);
  return capture;
}

std::optional<CapturedProgram> borrow_captured(const std::map<std::size_t, GivenParameter>& parameters,
                                               const Sizes& sizes, OpenCapture& open,
                                               const Relatives& relatives) {
  const bool is_open = open.model.plans != nullptr && !open.model.parsed.sizes.are_fixed();
  if (!is_open || *open.taken != taken_of(parameters)) return std::nullopt;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (open.held[i] && *open.held[i] != sizes[i]) return std::nullopt;
  const Sizes rest = without_held(open, sizes);
  std::optional<Built> built = open.alike.at(open.model, rest, relatives);
  std::optional<CapturedPorts> ports = built ? open.ports.at(rest) : std::nullopt;
  if (!ports) return std::nullopt;
  const Bindings& bindings = built->program.bindings();
  if (!fits(*ports, bindings.inputs, bindings.results)) return std::nullopt;
  CapturedProgram made = captured_program(*std::move(built), *std::move(ports), open.taken);
  made.is_borrowed = true;
  return made;
}

bool may_have_better(CapturedProgram& program) {
  return program.is_borrowed && ++program.runs > AlikePrograms::few_runs;
}

void note_captured(const ChosenCapture& capture, const CapturedProgram& program, OpenCapture& open) {
  if (capture.is_told && open.taken == capture.taken)
    open.alike.note(open.model, capture.imported.sizes, program.built);
}

CapturedProgram build_captured(const ChosenCapture& capture, const Relatives& relatives,
                               const std::stop_token& stop) {
  return captured_program(build_program(capture.imported, capture.chosen, relatives, stop), capture.ports,
                          capture.taken);
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

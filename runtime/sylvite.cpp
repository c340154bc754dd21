#include "sylvite/sylvite.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/file_errors.h"
#include "base/log.h"
#include "base/nearest.h"
#include "frontend/quick/quick.h"
#include "runtime/build.h"
#include "runtime/compiled_model.h"
#include "runtime/hinted_sizes.h"
#include "runtime/state_file.h"

namespace sylvite {
namespace {

CompiledModel ready(Family family) {
  return CompiledModel(std::make_unique<CompiledModel::Rep>(std::move(family)));
}

Chosen choose(const Imported& imported) {
  return choose_candidates(imported);
}

/// With `make`, which makes programs, the first of what was chosen: at once where nothing is to be compiled, or where runs
/// cannot be evaluated; else while they are. `imported` is of `model`, at its first sizes; `start` is when the call began.
CompiledModel answer_first(const OpenModel& model, const Imported& imported, double start,
                           const std::function<Family(const Chosen&, const std::stop_token&)>& make) {
  const std::string refusal = refuse_evaluation(imported);
  if (!refusal.empty())
    log_line(LogLevel::info, "compile.first_answer = fast: the first run waits for the program: {}", refusal);
  Chosen chosen = choose_candidates(imported);
  if (!refusal.empty()) return ready(make(chosen, {}));
  if (missing_objects(imported, chosen) == 0)
    return CompiledModel(std::make_unique<CompiledModel::Rep>(
        make(chosen, {}),
        model.parsed.sizes.are_fixed() ? nullptr : std::make_unique<OpenEvaluation>(model, imported)));
  auto first = std::make_unique<FirstAnswers>(
      model, imported, steady_seconds() - start,
      [make, chosen = std::move(chosen)](const std::stop_token& stop) { return make(chosen, stop); });
  return CompiledModel(std::make_unique<CompiledModel::Rep>(std::move(first)));
}

/// Of a model with open sizes: which kernels serve many of them takes another lowering to see, and what is in the cache is known only
/// then. Where the first answer is evaluated sooner than that, it does not wait for it. Nothing where it is not.
std::optional<CompiledModel> answer_ahead(const OpenModel& model, double start) {
  constexpr double soon = 0.25;  // seconds
  if (model.parsed.sizes.are_fixed()) return std::nullopt;
  OpenModel plain = model;
  plain.menu = nullptr;
  const Imported imported = bind_sizes(plain, first_sizes(model.parsed.sizes));
  if (!refuse_evaluation(imported).empty() ||
      quick_seconds(imported.transformed) / imported.setup->machine.threads > soon)
    return std::nullopt;
  return CompiledModel(std::make_unique<CompiledModel::Rep>(std::make_unique<FirstAnswers>(
      plain, imported, steady_seconds() - start,
      [model](const std::stop_token& stop) { return start_family(model, choose, stop); })));
}

CompiledModel compile_file(const std::string& onnx_path, const CompileOptions& options) {
  const double start = steady_seconds();
  const OpenModel model = open_model(onnx_path, make_setup(options), options.import);
  if (model.setup->config.first_answer != FirstAnswer::fast) return ready(start_family(model, choose));
  if (std::optional<CompiledModel> ahead = answer_ahead(model, start)) return std::move(*ahead);
  const Imported imported = bind_sizes(model, first_sizes(model.parsed.sizes));
  return answer_first(model, imported, start, [=](const Chosen& chosen, const std::stop_token& stop) {
    if (!model.parsed.sizes.are_fixed()) return start_family(model, choose, stop);
    Family family(model);
    (void)family.add(imported, [&](const Imported&) { return chosen; }, stop);
    return family;
  });
}

template <typename AnyPort>
std::vector<std::string> names_of(const std::vector<AnyPort>& ports) {
  std::vector<std::string> names;
  names.reserve(ports.size());
  for (const AnyPort& port : ports) names.push_back(port.name);
  return names;
}

std::vector<TensorType> types_of(const std::vector<Port>& ports) {
  std::vector<TensorType> types;
  types.reserve(ports.size());
  for (const Port& port : ports) types.push_back(port.type);
  return types;
}

void check_no_host(const HostPart* host) {
  if (host == nullptr) return;
  const HostStep step =
      host->steps().empty() ? HostStep{"an output", "it is no tensor"} : host->steps().front();
  throw UnsupportedError("the model's types are not all known before it runs: {}: {}", step.name,
                         step.reason);
}

/// The plan that tells the types of inputs and outputs.
const Plan& typed_plan(CompiledModel::Rep& model) {
  if (!model.sizes().are_fixed())
    throw UnsupportedError("the model's types are not known before it runs: {}",
                           describe_ranges(model.sizes()));
  check_no_host(model.host());
  return model.plan();
}

std::vector<cuda::DevicePointer> addresses_of(const std::vector<Port>& ports,
                                              const std::vector<DeviceTensor>& tensors, const char* what) {
  if (tensors.size() != ports.size())
    throw InputError("{} {}s given, the model has {}", tensors.size(), what, ports.size());
  std::vector<cuda::DevicePointer> addresses;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (tensors[i].type != ports[i].type) {
      throw InputError("{} {} '{}': got {}, expected {}", what, i, ports[i].name, tensors[i].type.to_string(),
                       ports[i].type.to_string());
    }
    addresses.push_back(reinterpret_cast<cuda::DevicePointer>(tensors[i].data));
  }
  return addresses;
}

std::size_t state_number(const Family& family, const std::string& name) {
  const std::vector<std::string> names = family.state_names();
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  const std::vector<std::string_view> known(names.begin(), names.end());
  if (names.empty()) throw UsageError("the model has no state '{}': it has none (see --state)", name);
  throw UsageError("the model has no state '{}'{} (its states: {})", name, suggestion(name, known),
                   fmt::join(names, ", "));
}

}  // namespace

CompiledModel::CompiledModel(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
CompiledModel::CompiledModel(CompiledModel&&) noexcept = default;
CompiledModel& CompiledModel::operator=(CompiledModel&&) noexcept = default;
CompiledModel::~CompiledModel() = default;

std::vector<Tensor> CompiledModel::run(const std::vector<Tensor>& inputs) {
  return rep_->run_tensors(inputs);
}

void CompiledModel::run_on_device(const std::vector<DeviceTensor>& inputs,
                                  const std::vector<DeviceTensor>& outputs, void* stream) {
  Built& built = rep_->family().of(inputs);
  check_no_host(built.host.get());
  const Plan& plan = built.program.plan();
  const DeviceArguments arguments = {addresses_of(plan.inputs, inputs, "input"),
                                     addresses_of(plan.outputs, outputs, "output")};
  built.program.run_on(static_cast<cuda::StreamHandle>(stream), arguments);
}

std::vector<HostValue> CompiledModel::run_values(const std::vector<HostValue>& inputs) {
  return rep_->run_values(inputs);
}

std::vector<HostStep> CompiledModel::host_steps() const {
  const HostPart* host = rep_->host();
  return host == nullptr ? std::vector<HostStep>() : host->steps();
}

const CompileReport& CompiledModel::report() const {
  return rep_->report();
}

bool CompiledModel::is_ready() const {
  return rep_->is_ready();
}

void CompiledModel::wait() {
  rep_->wait();
}

std::vector<std::string> CompiledModel::input_names() const {
  return rep_->host() != nullptr ? names_of(rep_->host()->inputs()) : names_of(rep_->plan().inputs);
}

std::vector<TensorType> CompiledModel::input_types() const {
  return types_of(typed_plan(*rep_).inputs);
}

std::vector<std::string> CompiledModel::output_names() const {
  return rep_->host() != nullptr ? names_of(rep_->host()->outputs()) : names_of(rep_->plan().outputs);
}

std::vector<TensorType> CompiledModel::output_types() const {
  return types_of(typed_plan(*rep_).outputs);
}

std::vector<std::string> CompiledModel::state_names() const {
  return rep_->family().state_names();
}

Tensor CompiledModel::state(const std::string& name) const {
  return rep_->family().states()[state_number(rep_->family(), name)];
}

void CompiledModel::set_state(const std::string& name, const Tensor& value) {
  std::vector<Tensor> values = rep_->family().states();
  values[state_number(rep_->family(), name)] = value;
  rep_->family().set_states(values);
}

void CompiledModel::reset_state() {
  std::vector<Tensor> values = rep_->family().states();
  for (Tensor& value : values) value = Tensor(value.dtype(), value.dims());
  rep_->family().set_states(values);
}

void CompiledModel::save_state(const std::string& path) const {
  const Family& family = rep_->family();
  write_states_file(path, {family.model_id(), family.state_names(), family.states()});
}

void CompiledModel::load_state(const std::string& path) {
  Family& family = rep_->family();
  const SavedStates wanted{family.model_id(), family.state_names(), family.states()};
  family.set_states(read_states_file(path, wanted));
}

CompiledModel compile(const std::string& onnx_path, const CompileOptions& options) {
  return with_file_named(onnx_path, [&] { return compile_file(onnx_path, options); });
}

CompiledModel compile(Graph graph, const CompileOptions& options) {
  const double start = steady_seconds();
  const auto setup = make_setup(options);
  const Imported imported = load_graph(std::move(graph), setup);
  if (setup->config.first_answer != FirstAnswer::fast)
    return ready(Family(build_program(imported, choose(imported))));
  const OpenModel fixed = {setup, "", {}};
  return answer_first(fixed, imported, start, [=](const Chosen& chosen, const std::stop_token& stop) {
    return Family(build_program(imported, chosen, {}, stop));
  });
}

}  // namespace sylvite

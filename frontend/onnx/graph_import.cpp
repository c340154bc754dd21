#include "frontend/onnx/graph_import.h"

#include <fmt/ranges.h>
#include <onnx-ml.pb.h>

#include <cmath>
#include <set>

#include "base/error.h"
#include "base/file_errors.h"
#include "frontend/graph/copy.h"
#include "frontend/onnx/given_inputs.h"
#include "frontend/onnx/moved_strings.h"
#include "frontend/onnx/node_order.h"
#include "frontend/onnx/node_store.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/tensor.h"
#include "frontend/onnx/weights.h"

namespace sylvite {
namespace {

/// ONNX Runtime arranges the weights of these as the machine that saved the model has its vectors, which no file says.
constexpr std::string_view made_for_one_machine =
    ": ONNX Runtime saved this model for one machine; take the one that it was made of, or save it with "
    "ORT_ENABLE_EXTENDED";

constexpr std::int64_t max_imported_nodes = 50'000;  ///< once functions are inlined and loops unrolled
constexpr int entries_like_a_node = 16;  ///< so many entries of what a node lists take as long as a node
constexpr int max_depth = 64;            ///< of calls and subgraphs

/// Throws an error of the same code with `prefix` before its message.
[[noreturn]] void rethrow_named(const Error& error, const std::string& prefix) {
  const std::string message = prefix + ": " + error.what();
  if (const auto* needs = dynamic_cast<const NeedsValueError*>(&error))
    throw NeedsValueError(message, needs->reason(), needs->size());
  throw_of_code(error.code() == ErrorCode::bad_input ? ErrorCode::bad_model : error.code(), message);
}

std::map<std::string, int> model_opsets(const onnx::ModelProto& model) {
  std::map<std::string, int> opsets;
  for (const auto& opset : model.opset_import()) {
    const std::string domain = opset.domain() == "ai.onnx" ? "" : opset.domain();
    opsets[domain] = static_cast<int>(opset.version());
  }
  opsets.emplace("", 1);
  return opsets;
}

/// Throws UsageError unless the model takes an input of these dims, which `what` has.
void check_declared(const onnx::TensorShapeProto& declared, const Dims& given, std::string_view what) {
  if (given.size() != static_cast<std::size_t>(declared.dim_size()))
    throw UsageError("its rank is {}, but {} of rank {} is given", declared.dim_size(), what, given.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto& dim = declared.dim(static_cast<int>(i));
    const bool is_known = dim.has_dim_value() && dim.dim_value() >= 0;
    if (is_known && given[i] != dim.dim_value())
      throw UsageError("dimension {} is {} in the model, but {} is given", i, dim.dim_value(), given[i]);
  }
}

/// Sizes that the file leaves open are given as whole shapes: see options_at.
Dims bound_dims(const onnx::ValueInfoProto& input, const ImportOptions& options) {
  const auto& type = input.type().tensor_type();
  const auto given = options.input_shapes.find(input.name());
  if (given != options.input_shapes.end() && !type.has_shape()) return given->second;
  if (!type.has_shape())
    throw UnsupportedError("the model gives no shape; give one with --shapes {}=1x3x224x224 (import.shapes)",
                           input.name());
  Dims dims;
  for (const auto& dim : type.shape().dim()) dims.push_back(dim.dim_value());
  if (given == options.input_shapes.end()) return dims;
  check_declared(type.shape(), given->second, "a shape");
  return given->second;
}

/// The declared element type as text where another one is computed, else nothing. Texts are numbers here.
std::string other_element(int declared, DType computed) {
  if (declared == onnx::TensorProto::UNDEFINED || declared == onnx::TensorProto::STRING) return "";
  return declared == onnx_of_dtype(computed) ? "" : std::string(dtype_name(dtype_of_onnx(declared)));
}

/// Says where the outputs are not what the model declares; it is what is computed that is given out.
void warn_of_declared(const onnx::ValueInfoProto& declared, const TensorType& computed,
                      std::vector<std::string>& warnings) {
  const auto& type = declared.type().tensor_type();
  if (!declared.type().has_tensor_type() || !type.has_shape()) return;
  const std::string element = other_element(type.elem_type(), computed.dtype);
  const Dims dims = computed.dims();
  std::vector<std::string> words;
  bool agrees = element.empty() && type.shape().dim_size() == static_cast<int>(dims.size());
  for (int i = 0; i < type.shape().dim_size(); ++i) {
    const auto& dim = type.shape().dim(i);
    words.push_back(dim.has_dim_value()       ? std::to_string(dim.dim_value())
                    : dim.dim_param().empty() ? "?"
                                              : dim.dim_param());
    agrees = agrees && (!dim.has_dim_value() || dim.dim_value() == dims[static_cast<std::size_t>(i)]);
  }
  if (agrees) return;
  warnings.push_back(fmt::format("output '{}' is declared as {}[{}], but is computed as {}", declared.name(),
                                 element, fmt::join(words, ","), computed.to_string()));
}

/// Counts a level of nesting while it lives.
class Depth {
 public:
  explicit Depth(int& depth) : depth_(depth) {
    if (++depth_ > max_depth) {
      --depth_;
      throw UnsupportedError("subgraphs and functions nest deeper than {}", max_depth);
    }
  }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;
  ~Depth() { --depth_; }

 private:
  int& depth_;
};

}  // namespace

ImportOptions options_at(const ParsedModel& model, const Sizes& sizes) {
  ImportOptions options = model.options;
  for (const SizedInput& input : model.sizes.inputs)
    if (input.is_sized) options.input_shapes.try_emplace(input.name, dims_at(input, sizes));
  options.states = model.states;
  return options;
}

OnnxBinding* OnnxScope::find(const std::string& name) {
  for (OnnxScope* scope = this; scope != nullptr; scope = scope->parent_) {
    const auto found = scope->names_.find(name);
    if (found != scope->names_.end()) return &found->second;
  }
  return nullptr;
}

OnnxScope OnnxScope::of_function() {
  OnnxScope scope;
  scope.is_function_ = true;
  return scope;
}

OnnxGraphImporter::OnnxGraphImporter(std::shared_ptr<const onnx::ModelProto> model, const DataFolder& folder,
                                     const ImportOptions& options, OnnxStage stage,
                                     std::shared_ptr<InitializerStore> store)
    : model_(std::move(model)),
      options_(options),
      stage_(stage),
      store_(std::move(store)),
      external_(folder, options.follow_links),
      functions_(*model_),
      builder_(graph_) {}

Tensor OnnxGraphImporter::read_initializer(const onnx::TensorProto& proto) const {
  return store_ == nullptr ? load_initializer(proto)
                           : store_->get(proto, [&] { return load_initializer(proto); });
}

Tensor OnnxGraphImporter::load_initializer(const onnx::TensorProto& proto) const {
  if (!is_data_absent(proto, external_)) return decode_tensor(proto, external_, model_);
  if (!options_.random_weights) {
    throw IoError(
        "tensor '{}': its data should be in {}, which is not there; --random-weights 0 "
        "(import.random_weights) makes up values",
        proto.name(), external_file_name(proto, external_));
  }
  const Dims dims(proto.dims().begin(), proto.dims().end());
  const TensorType type = make_type(dtype_of_onnx(proto.data_type()), dims);
  check_value_size(type);
  const double factor = std::sqrt(3.0 / weight_fan_in(model_->graph(), proto));
  return random_floats(type.dtype, dims, proto.name(), options_.seed, factor);
}

Tensor OnnxGraphImporter::dense(const onnx::SparseTensorProto& proto) {
  builder_.reserve_table(Dims(proto.dims().begin(), proto.dims().end()));
  return decode_sparse_tensor(proto, external_);
}

OnnxBinding& OnnxGraphImporter::read(OnnxScope& scope, const std::string& name) {
  OnnxBinding* binding = scope.find(name);
  if (binding == nullptr) throw ModelError("'{}' is read but nothing produces it", name);
  if (binding->is_deferred)
    throw NeedsValueError(fmt::format("'{}' is known only when the model runs", name),
                          "reads '" + name + "'");
  if (binding->value == no_value && binding->initializer != nullptr) {
    if (binding->initializer->data_type() == onnx::TensorProto::STRING) {
      binding->strings = std::make_shared<const StringTensor>(decode_strings(*binding->initializer));
      binding->initializer = nullptr;
      return *binding;
    }
    const Tensor weight = read_initializer(*binding->initializer);
    builder_.raise_budget(8 * weight.byte_size());  // may be transposed twice
    binding->value = graph_.add_constant(weight, name);
  } else if (binding->value == no_value && binding->sparse != nullptr) {
    binding->value = graph_.add_constant(dense(*binding->sparse), name);
  }
  return *binding;
}

void OnnxGraphImporter::bind_output(OnnxScope& scope, const std::string& name, OnnxBinding binding) {
  // Names of subgraphs and functions repeat, and would only be numbered.
  const bool is_nameable = scope.is_main() && binding.is_tensor();
  if (is_nameable && graph_.value(binding.value).producer != no_node) {
    const std::string automatic = "v" + std::to_string(binding.value);
    if (graph_.value(binding.value).name == automatic) graph_.rename(binding.value, name);
  }
  scope.bind(name, std::move(binding));
}

void OnnxGraphImporter::bind_initializers(const onnx::GraphProto& graph, OnnxScope& scope) {
  std::set<std::string> names;
  const auto check_new = [&](const std::string& name) {
    if (!names.insert(name).second) throw ModelError("the graph has two initializers named '{}'", name);
  };
  for (const onnx::TensorProto& proto : graph.initializer()) {
    check_new(proto.name());
    scope.bind(proto.name(), {.initializer = &proto});
  }
  for (const onnx::SparseTensorProto& proto : graph.sparse_initializer()) {
    check_new(proto.values().name());
    scope.bind(proto.values().name(), {.sparse = &proto});
  }
}

void OnnxGraphImporter::import_input(const onnx::ValueInfoProto& input, OnnxScope& scope) {
  if (input.type().value_case() == onnx::TypeProto::VALUE_NOT_SET)
    throw ModelError("input '{}' has no type", input.name());
  if (input.type().has_map_type())
    throw UnsupportedError("maps are not supported: give the model their values as a tensor");
  const bool is_tensor = input.type().has_tensor_type();
  const bool is_numeric = is_tensor && input.type().tensor_type().elem_type() != onnx::TensorProto::STRING;
  if (texts_ != nullptr && is_text_input(input)) {
    const TensorType type = make_type(DType::i64, bound_dims(input, options_));
    check_value_size(type);
    free_inputs_.push_back(declared_port(input));
    scope.bind(input.name(), {.value = graph_.add_input(input.name(), type), .texts = texts_->list()});
    return;
  }
  if (!is_numeric && stage_ == OnnxStage::first) {
    free_inputs_.push_back(declared_port(input));
    scope.bind(input.name(), OnnxBinding::deferred());
    return;
  }
  if (!is_tensor) {
    throw UnsupportedError("input '{}' is not a tensor; sequences and optionals need steps on the host",
                           input.name());
  }
  const DType dtype = dtype_of_onnx(input.type().tensor_type().elem_type());
  const auto bound = options_.bound_inputs.find(input.name());
  if (bound != options_.bound_inputs.end()) {
    if (bound->second.dtype() != dtype) {
      throw UsageError("the bound value is {}, expected {}", dtype_name(bound->second.dtype()),
                       dtype_name(dtype));
    }
    const auto& type = input.type().tensor_type();
    if (type.has_shape()) check_declared(type.shape(), bound->second.dims(), "a value");
    builder_.raise_budget(8 * bound->second.byte_size());  // as of weights: see read
    scope.bind(input.name(), OnnxBinding::of(graph_.add_constant(bound->second, input.name())));
    return;
  }
  const TensorType type = make_type(dtype, bound_dims(input, options_));
  check_value_size(type);
  free_inputs_.push_back({input.name(), type.to_string()});
  scope.bind(input.name(), OnnxBinding::of(graph_.add_input(input.name(), type)));
}

void OnnxGraphImporter::import_inputs(OnnxScope& scope) {
  check_given_inputs(model_->graph(), options_);
  if (stage_ == OnnxStage::first) texts_ = KnownTexts::of(model_->graph());
  std::set<std::string> seen;
  for (const onnx::ValueInfoProto& input : model_->graph().input()) {
    if (!seen.insert(input.name()).second)
      throw ModelError("the model has two inputs named '{}'", input.name());
    const bool is_bound = options_.bound_inputs.contains(input.name());
    if (!is_bound && scope.find(input.name()) != nullptr) continue;  // an initializer
    try {
      import_input(input, scope);
    } catch (const Error& error) {
      rethrow_named(error, fmt::format("input '{}'", input.name()));
    }
  }
}

void OnnxGraphImporter::import_outputs(OnnxScope& scope) {
  for (const onnx::ValueInfoProto& output : model_->graph().output()) {
    OnnxBinding* binding = scope.find(output.name());
    if (binding == nullptr) throw ModelError("nothing produces the model's output '{}'", output.name());
    ValueId id = read(scope, output.name()).value;
    if (!binding->is_tensor()) throw UnsupportedError("output '{}' is not a tensor", output.name());
    if (graph_.value(id).name != output.name()) {
      // The value already goes by another name (an input, a constant, a second output): give it one more.
      const TensorType type = graph_.type(id);
      id = graph_.is_constant(id) ? graph_.add_constant(*graph_.value(id).constant, output.name())
                                  : graph_.add(Op::reshape, {id}, {{"shape", type.dims()}}, output.name());
      graph_.rename(id, output.name());
    }
    warn_of_declared(output, graph_.type(id), warnings_);
    graph_.outputs.push_back(id);
  }
  if (graph_.outputs.empty()) throw ModelError("the model has no outputs");
}

void OnnxGraphImporter::count_nodes(std::int64_t count) {
  nodes_imported_ += count;
  check_node_count(nodes_imported_, max_imported_nodes);
}

void OnnxGraphImporter::expect(OnnxExpectation expectation) {
  if (graph_.is_constant(expectation.holds)) {
    if (graph_.value(expectation.holds).constant->as_int64(0) == 0)
      throw ModelError("{}", expectation.otherwise);
    return;
  }
  const bool is_of_a_trip = builder_.is_inside_loop();
  if (stage_ == OnnxStage::whole || is_of_a_trip)
    throw UnsupportedError("no step of the host can check a run here: {}", expectation.otherwise);
  expectations_.push_back(std::move(expectation));
}

OnnxFrame OnnxGraphImporter::main_frame() const {
  OnnxFrame frame;
  frame.opsets = model_opsets(*model_);
  return frame;
}

void OnnxGraphImporter::import_main(OnnxScope& scope) {
  if (!model_->graph().name().empty()) graph_.name = model_->graph().name();
  const OnnxFrame frame = main_frame();
  bind_initializers(model_->graph(), scope);
  import_inputs(scope);
  for (const onnx::NodeProto* node : order_nodes(model_->graph().node()))
    if (stage_ == OnnxStage::first)
      import_or_defer(*node, scope, frame);
    else
      import_node(*node, scope, frame);
}

Graph OnnxGraphImporter::import_model() {
  OnnxScope scope;
  import_main(scope);
  import_outputs(scope);
  return without_dead_nodes(graph_);
}

std::vector<OnnxBinding> OnnxGraphImporter::import_subgraph(const onnx::GraphProto& graph,
                                                            const std::vector<OnnxBinding>& inputs,
                                                            OnnxScope& outer, const OnnxFrame& frame) {
  if (inputs.size() != static_cast<std::size_t>(graph.input_size())) {
    throw ModelError("subgraph '{}' has {} inputs, {} are given", graph.name(), graph.input_size(),
                     inputs.size());
  }
  const Depth depth(depth_);
  count_nodes(1 + (graph.initializer_size() + graph.input_size()) / entries_like_a_node);
  OnnxScope scope(&outer);
  bind_initializers(graph, scope);
  for (int i = 0; i < graph.input_size(); ++i)
    scope.bind(graph.input(i).name(), inputs[static_cast<std::size_t>(i)]);
  import_nodes(graph.node(), scope, frame);
  std::vector<OnnxBinding> outputs;
  for (const onnx::ValueInfoProto& output : graph.output()) outputs.push_back(read(scope, output.name()));
  return outputs;
}

void OnnxGraphImporter::import_nodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                                     OnnxScope& scope, const OnnxFrame& frame) {
  const auto order = [&] { return order_nodes(nodes); };
  NodeStore* store = node_store();
  if (store == nullptr)
    for (const onnx::NodeProto* node : order()) import_node(*node, scope, frame);
  else
    for (const onnx::NodeProto* node : store->order(&nodes, order)) import_node(*node, scope, frame);
}

void OnnxGraphImporter::import_function(const onnx::NodeProto& node, const onnx::FunctionProto& function,
                                        OnnxScope& scope, const OnnxFrame& frame) {
  const Depth depth(depth_);
  count_nodes((function.opset_import_size() + function.attribute_proto_size() + function.input_size()) /
              entries_like_a_node);
  if (node.input_size() > function.input_size())
    throw ModelError("{} inputs are given, the function takes {}", node.input_size(), function.input_size());
  const OnnxFrame inner = call_frame(node, function, frame);
  OnnxScope body = OnnxScope::of_function();
  for (int i = 0; i < function.input_size(); ++i) {
    const bool is_given = i < node.input_size() && !node.input(i).empty();
    body.bind(function.input(i), is_given ? read(scope, node.input(i)) : OnnxBinding{});
  }
  import_nodes(function.node(), body, inner);
  for (int i = 0; i < std::min(node.output_size(), function.output_size()); ++i)
    if (!node.output(i).empty()) bind_output(scope, node.output(i), read(body, function.output(i)));
}

void OnnxGraphImporter::import_operator(const OnnxOp& op, const onnx::NodeProto& node, OnnxScope& scope,
                                        const OnnxFrame& frame, int opset) {
  ImportContext context(*this, scope, frame, node, opset);
  op.import(context);
  context.check_no_surplus_inputs();
  // Those of the default domain are what its versions say; other domains gain new ones without a version.
  if (!op.domain.empty()) context.check_no_surplus_attributes();
}

OnnxGraphImporter::Row OnnxGraphImporter::row_of(const onnx::NodeProto& node, const OnnxFrame& frame) {
  const std::string domain = node.domain() == "ai.onnx" ? "" : node.domain();
  const auto found = frame.opsets.find(domain);
  const int opset = found == frame.opsets.end() ? 1 : found->second;
  const OnnxOp* op = find_onnx_op(domain, node.op_type(), opset);
  if (op == nullptr) {
    throw UnsupportedError("operator '{}' of domain '{}', opset {}, is not supported{}", node.op_type(),
                           domain.empty() ? "ai.onnx" : domain, opset,
                           domain == "com.microsoft.nchwc" ? made_for_one_machine : "");
  }
  return {op, opset};
}

void OnnxGraphImporter::check_operator(const onnx::NodeProto& node, const OnnxFrame& frame) const {
  if (functions_.find(node) != nullptr) return;
  try {
    (void)row_of(node, frame);
  } catch (const Error& error) {
    rethrow_named(error, describe_node(node));
  }
}

void OnnxGraphImporter::import_node(const onnx::NodeProto& node, OnnxScope& scope, const OnnxFrame& frame) {
  try {
    count_nodes(1 + (node.input_size() + node.output_size() + node.attribute_size()) / entries_like_a_node);
    if (const onnx::FunctionProto* function = functions_.find(node)) {
      import_function(node, *function, scope, frame);
      return;
    }
    const auto& [op, opset] = row_of(node, frame);
    builder_.set_node_name(node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name());
    if (moves_strings(*this, scope, node))
      import_moved_strings(*this, scope, frame, node, *op, opset);
    else
      import_operator(*op, node, scope, frame, opset);
    if (!is_running()) check_node_count(static_cast<std::int64_t>(graph_.nodes().size()), options_.max_nodes);
    for (const std::string& output : node.output())
      if (!output.empty() && scope.find(output) == nullptr)
        throw UnsupportedError("output '{}' of {} is not supported", output, node.op_type());
  } catch (const Error& error) {
    rethrow_named(error, describe_node(node));
  } catch (const std::bad_alloc&) {
    throw UnsupportedError("{}: not enough memory", describe_node(node));
  } catch (const std::exception& error) {
    // What is wrong with a model is told as a typed error; this is a check of ours that is missing.
    throw InternalError("{}: {}; please report this with the model", describe_node(node), error.what());
  }
}

}  // namespace sylvite

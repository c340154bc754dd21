#include "tests/fuzz/model_grower.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"
#include "frontend/graph/interpreter.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/tensor.h"

namespace sylvite::fuzz {
namespace {

constexpr int opset = 23;
constexpr double largest_value = 1e4;

const std::vector<Growth>& all_growths() {
  static const std::vector<Growth> growths = [] {
    std::vector<Growth> all;
    for (const auto table : {pointwise_growths(), shape_growths(), index_growths(), fold_growths(),
                             contraction_growths(), loop_growths(), written_growths(), seldom_growths()}) {
      all.insert(all.end(), table.begin(), table.end());
    }
    return all;
  }();
  return growths;
}

onnx::ModelProto empty_model() {
  onnx::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(opset);
  model.mutable_graph()->set_name("random");
  return model;
}

/// A rough count of the multiplications of contractions, which the interpreter is slow at.
std::int64_t work_of(const Graph& graph) {
  std::int64_t work = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op != Op::matmul && node.op != Op::conv && node.op != Op::attention) continue;
    const Dims second = graph.type(node.inputs.at(1)).dims();
    const std::int64_t outputs = std::max<std::int64_t>(graph.type(node.outputs.at(0)).element_count(), 1);
    const std::int64_t elements = std::max<std::int64_t>(graph.type(node.inputs[1]).element_count(), 1);
    const std::int64_t depth =
        node.op == Op::matmul ? second[second.size() - 2] : elements / std::max<std::int64_t>(second[0], 1);
    work += outputs * depth;
  }
  return work;
}

}  // namespace

onnx::NodeProto make_node(const std::string& op, const std::vector<std::string>& inputs) {
  onnx::NodeProto node;
  node.set_op_type(op);
  for (const std::string& input : inputs) node.add_input(input);
  return node;
}

void set_attribute(onnx::NodeProto& node, const std::string& name, std::int64_t value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

void set_attribute(onnx::NodeProto& node, const std::string& name, double value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::FLOAT);
  attribute.set_f(static_cast<float>(value));
}

void set_attribute(onnx::NodeProto& node, const std::string& name, const std::string& value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::STRING);
  attribute.set_s(value);
}

void set_attribute(onnx::NodeProto& node, const std::string& name, const std::vector<std::int64_t>& values) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INTS);
  for (const std::int64_t value : values) attribute.add_ints(value);
}

onnx::TensorProto tensor_proto(const std::string& name, const Tensor& tensor) {
  onnx::TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(onnx_of_dtype(tensor.dtype()));
  for (const std::int64_t extent : tensor.dims()) proto.add_dims(extent);
  proto.set_raw_data(tensor.data(), static_cast<std::size_t>(tensor.byte_size()));
  return proto;
}

void set_value_info(onnx::ValueInfoProto& info, const std::string& name, DType dtype, const Dims& dims) {
  info.set_name(name);
  auto& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx_of_dtype(dtype));
  type.mutable_shape();
  for (const std::int64_t extent : dims) type.mutable_shape()->add_dim()->set_dim_value(extent);
}

ModelGrower::ModelGrower(std::uint32_t seed) : random_(seed * 2654435761U + 1), model_(empty_model()) {
  allows_infinities_ = chance(0.08);
  most_elements_ = chance(0.25) ? 40'000 : 4'000;
  most_work_ = 2'000'000;
  add_inputs();
}

std::size_t ModelGrower::pick(std::size_t count) {
  return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_);
}
std::int64_t ModelGrower::between(std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, std::max(low, high))(random_);
}
bool ModelGrower::chance(double probability) {
  return std::uniform_real_distribution<double>(0, 1)(random_) < probability;
}

const Known* ModelGrower::any(const std::function<bool(const Tensor&)>& fits) {
  for (int attempt = 0; attempt < 12; ++attempt) {
    const std::size_t late = std::min(pick(values_.size()), pick(values_.size()));
    const Known& known = values_[values_.size() - 1 - late];
    if (fits(known.sample)) return &known;
  }
  return nullptr;
}

Dims ModelGrower::random_dims(int rank) {
  constexpr std::int64_t extents[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 24, 32, 33, 48, 64};
  Dims dims;
  std::int64_t elements = 1;
  for (int i = 0; i < rank; ++i) {
    std::int64_t extent = extents[pick(std::size(extents))];
    while (elements * extent > most_elements_ / 2) extent = (extent + 1) / 2;
    if (elements * extent > most_elements_ / 2 || chance(0.05)) extent = 1;
    dims.push_back(extent);
    elements *= extent;
  }
  if (rank > 0 && chance(0.015)) dims[pick(dims.size())] = 0;
  return dims;
}

Tensor ModelGrower::random_tensor(DType dtype, const Dims& dims) {
  Tensor tensor(dtype, dims);
  const bool on_grid = chance(0.4);
  std::uniform_real_distribution<double> reals(-2, 2);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    if (is_float(dtype) && allows_infinities_ && chance(0.03)) {
      constexpr double infinity = std::numeric_limits<double>::infinity();
      tensor.set_double(i, one_of({infinity, -infinity, std::nan(""), -0.0}));
    } else if (is_float(dtype)) {
      const double value = reals(random_);
      tensor.set_double(i, on_grid ? std::round(value * 4) / 4 : value);
    } else if (dtype == DType::boolean) {
      tensor.set_int64(i, between(0, 1));
    } else {
      tensor.set_int64(i, between(is_signed_integer(dtype) ? -5 : 0, 5));
    }
  }
  return tensor;
}

Dims ModelGrower::broadcast_partner(const Dims& dims) {
  const auto drop = static_cast<std::ptrdiff_t>(chance(0.5) ? 0 : pick(dims.size() + 1));
  Dims partner(dims.begin() + drop, dims.end());
  for (std::int64_t& extent : partner)
    if (chance(0.3)) extent = 1;
  return partner;
}

std::string ModelGrower::weight(const Tensor& tensor) {
  std::string name = fmt::format("w{}", names_++);
  weights_.emplace(name, tensor);
  return name;
}

std::string ModelGrower::input(const Tensor& sample) {
  std::string name = fmt::format("x{}", names_++);
  inputs_.emplace(name, sample);
  set_value_info(*model_.mutable_graph()->add_input(), name, sample.dtype(), sample.dims());
  values_.push_back({name, sample});
  return name;
}

void ModelGrower::add_inputs() {
  const std::size_t count = 1 + pick(3);
  for (std::size_t i = 0; i < count; ++i) {
    constexpr DType others[] = {DType::i64,     DType::i32, DType::i8, DType::u8,
                                DType::boolean, DType::f16, DType::f64};
    const DType dtype = chance(0.7) ? DType::f32 : others[pick(std::size(others))];
    Dims dims;
    switch (pick(5)) {
      case 0:
      case 1:
        dims = {between(1, 2), one_of<std::int64_t>({1, 3, 4, 8, 16, 20, 32}), between(3, 14),
                between(3, 17)};
        break;
      case 2:
        dims = {between(1, 3), one_of<std::int64_t>({1, 4, 7, 16, 33}),
                one_of<std::int64_t>({8, 12, 16, 33, 64})};
        break;
      default:
        dims = random_dims(static_cast<int>(pick(6)));
    }
    while (checked_product(dims, "input") > most_elements_) dims[pick(dims.size())] = 1;
    input(random_tensor(dtype, dims));
  }
}

onnx::ModelProto ModelGrower::model_of(const onnx::NodeProto& node) const {
  onnx::ModelProto model = empty_model();
  onnx::GraphProto& graph = *model.mutable_graph();
  *graph.add_node() = node;
  for (const std::string& output : node.output()) graph.add_output()->set_name(output);
  std::set<std::string> done;
  for (const std::string& name : node.input()) {
    if (name.empty() || !done.insert(name).second) continue;
    if (const auto found = weights_.find(name); found != weights_.end()) {
      *graph.add_initializer() = tensor_proto(name, found->second);
      continue;
    }
    const auto known = std::ranges::find(values_, name, &Known::name);
    set_value_info(*graph.add_input(), name, known->sample.dtype(), known->sample.dims());
  }
  return model;
}

bool ModelGrower::is_acceptable(const std::vector<Tensor>& results) const {
  return std::ranges::all_of(results, [&](const Tensor& result) {
    if (result.size() > most_elements_) return false;
    if (!is_float(result.dtype())) return true;
    for (std::int64_t i = 0; i < result.size(); ++i) {
      const double value = result.as_double(i);
      const bool is_fine = allows_infinities_ || std::abs(value) <= largest_value;
      if (!is_fine) return false;
    }
    return true;
  });
}

std::vector<std::string> ModelGrower::emit(onnx::NodeProto node, int outputs) {
  for (int i = 0; i < outputs; ++i) node.add_output(fmt::format("v{}", names_++));
  node.set_name("make_" + node.output(0));
  const onnx::ModelProto model = model_of(node);
  std::vector<Tensor> results;
  try {
    const Graph graph = import_onnx_bytes(model.SerializeAsString(), "");
    if (work_of(graph) > most_work_) return {};
    for (const ValueId id : graph.outputs)
      if (graph.type(id).element_count() > most_elements_) return {};
    std::vector<Tensor> arguments;
    for (const onnx::ValueInfoProto& value : model.graph().input())
      arguments.push_back(std::ranges::find(values_, value.name(), &Known::name)->sample);
    results = interpret(graph, arguments);
  } catch (const Error& error) {
    ++refusals_[error.what()];
    return {};
  }
  if (!is_acceptable(results)) return {};
  std::vector<std::string> names(node.output().begin(), node.output().end());
  for (std::size_t i = 0; i < names.size(); ++i) {
    values_.push_back({names[i], results[i]});
    set_value_info(*model_.mutable_graph()->add_value_info(), names[i], results[i].dtype(),
                   results[i].dims());
  }
  *model_.mutable_graph()->add_node() = std::move(node);
  return names;
}

void ModelGrower::choose_outputs() {
  onnx::GraphProto& graph = *model_.mutable_graph();
  std::set<std::string> chosen;
  const std::size_t count = 1 + pick(4);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t late = i == 0 ? 0 : pick(values_.size());
    const Known& known = values_[values_.size() - 1 - late];
    if (known.name[0] == 'x' || !chosen.insert(known.name).second) continue;
    set_value_info(*graph.add_output(), known.name, known.sample.dtype(), known.sample.dims());
  }
}

/// Nodes, inputs and initializers that no output needs.
void ModelGrower::drop_unread() {
  onnx::GraphProto& graph = *model_.mutable_graph();
  std::set<std::string> needed;
  for (const auto& output : graph.output()) needed.insert(output.name());
  std::vector<onnx::NodeProto> kept;
  for (int i = graph.node_size() - 1; i >= 0; --i) {
    const auto& node = graph.node(i);
    if (std::ranges::none_of(node.output(), [&](const auto& name) { return needed.contains(name); }))
      continue;
    needed.insert(node.input().begin(), node.input().end());
    kept.push_back(node);
  }
  graph.clear_node();
  for (auto node = kept.rbegin(); node != kept.rend(); ++node) *graph.add_node() = *node;
  const auto prune = [&](auto* values) {
    for (int i = values->size() - 1; i >= 0; --i)
      if (!needed.contains(values->Get(i).name())) values->DeleteSubrange(i, 1);
  };
  prune(graph.mutable_input());
  prune(graph.mutable_value_info());
  for (const auto& [name, tensor] : weights_)
    if (needed.contains(name)) *graph.add_initializer() = tensor_proto(name, tensor);
}

ModelCase ModelGrower::grow(int nodes) {
  int total = 0;
  for (const Growth& growth : all_growths()) total += growth.weight;
  for (int attempt = 0; attempt < nodes * 6 && model_.graph().node_size() < nodes; ++attempt) {
    auto at = static_cast<int>(pick(static_cast<std::size_t>(total)));
    for (const Growth& growth : all_growths()) {
      at -= growth.weight;
      if (at >= 0) continue;
      growth.grow(*this);
      break;
    }
  }
  if (model_.graph().node_size() == 0) (void)emit(make_node("Identity", {values_[0].name}));
  choose_outputs();
  drop_unread();
  ModelCase result{model_, {}};
  for (const auto& value : model_.graph().input()) result.inputs.push_back(inputs_.at(value.name()));
  return result;
}

}  // namespace sylvite::fuzz

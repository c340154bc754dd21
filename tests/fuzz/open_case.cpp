#include "tests/fuzz/open_case.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/error.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/tensor.h"

namespace sylvite::fuzz {
namespace {

/// Where a run's inputs tell a symbol's size.
struct Place {
  std::string input;
  std::int64_t axis = 0;
};

/// Makes the extents of `symbols` open in one model.
class Opening {
 public:
  Opening(ModelCase test, std::map<std::int64_t, std::string> symbols)
      : test_(std::move(test)), symbols_(std::move(symbols)) {}

  ModelCase result() {
    onnx::GraphProto& graph = *test_.model.mutable_graph();
    for (onnx::ValueInfoProto& input : *graph.mutable_input()) open(input);
    compute_shapes();
    weights_to_inputs();
    for (onnx::ValueInfoProto& output : *graph.mutable_output())
      output.mutable_type()->mutable_tensor_type()->clear_shape();
    graph.clear_value_info();
    return std::move(test_);
  }

 private:
  void open(onnx::ValueInfoProto& input) {
    auto& dims = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (int i = 0; i < dims.dim_size(); ++i) {
      const auto symbol = symbols_.find(dims.dim(i).dim_value());
      if (symbol == symbols_.end()) continue;
      dims.mutable_dim(i)->set_dim_param(symbol->second);
      places_.try_emplace(symbol->first, Place{input.name(), i});
    }
  }

  /// Weights of which nothing but their values is read.
  void weights_to_inputs() {
    onnx::GraphProto& graph = *test_.model.mutable_graph();
    google::protobuf::RepeatedPtrField<onnx::TensorProto> kept;
    for (const onnx::TensorProto& weight : graph.initializer()) {
      const auto is_open = [&](std::int64_t extent) { return symbols_.contains(extent); };
      if (is_number(weight) || !std::ranges::any_of(weight.dims(), is_open)) {
        *kept.Add() = weight;
        continue;
      }
      const Tensor tensor = decode_tensor(weight, ExternalData({}));
      set_value_info(*graph.add_input(), weight.name(), tensor.dtype(), tensor.dims());
      open(*graph.mutable_input(graph.input_size() - 1));
      test_.inputs.push_back(tensor);
    }
    graph.mutable_initializer()->Swap(&kept);
  }

  /// Shapes, axes, limits and the like: lists of i64.
  static bool is_number(const onnx::TensorProto& weight) {
    return weight.data_type() == onnx::TensorProto::INT64 && weight.dims_size() <= 1;
  }

  void compute_shapes() {
    onnx::GraphProto& graph = *test_.model.mutable_graph();
    google::protobuf::RepeatedPtrField<onnx::NodeProto> before;
    before.Swap(graph.mutable_node());
    for (onnx::NodeProto& node : before) {
      const std::string& op = node.op_type();
      const int at = op == "Reshape" || op == "Expand" ? 1 : 0;
      if (at == 1 || op == "ConstantOfShape") node.set_input(at, computed(node.input(at)));
      *graph.add_node() = node;
    }
  }

  /// The name of the same numbers, computed from the sizes where they follow from them.
  std::string computed(const std::string& name) {
    onnx::GraphProto& graph = *test_.model.mutable_graph();
    const auto found =
        std::ranges::find(graph.initializer(), name, [](const auto& each) { return each.name(); });
    if (found == graph.initializer().end()) return name;
    const Tensor numbers = decode_tensor(*found, ExternalData({}));
    onnx::NodeProto concat = make_node("Concat", {});
    set_attribute(concat, "axis", std::int64_t{0});
    bool follows = false;
    for (std::int64_t i = 0; i < numbers.size(); ++i)
      concat.add_input(number(static_cast<std::int64_t>(numbers.as_double(i)), follows));
    if (!follows) return name;
    return add(std::move(concat));
  }

  /// A vector of one number, which may be a multiple of a size.
  std::string number(std::int64_t value, bool& follows) {
    for (const auto& [extent, place] : places_) {
      if (value < extent || value % extent != 0) continue;
      follows = true;
      const std::string shape = add(make_node("Shape", {place.input}));
      const std::string size = add(make_node("Gather", {shape, constant(place.axis)}));
      return value == extent ? size : add(make_node("Mul", {size, constant(value / extent)}));
    }
    return constant(value);
  }

  std::string constant(std::int64_t value) {
    const std::string name = "open_number_" + std::to_string(names_++);
    *test_.model.mutable_graph()->add_initializer() = tensor_proto(name, Tensor::vector_i64({value}));
    return name;
  }

  std::string add(onnx::NodeProto node) {
    const std::string name = "open_value_" + std::to_string(names_++);
    node.add_output(name);
    node.set_name(name);
    *test_.model.mutable_graph()->add_node() = std::move(node);
    return name;
  }

  ModelCase test_;
  std::map<std::int64_t, std::string> symbols_;
  std::map<std::int64_t, Place> places_;  ///< by extent
  int names_ = 0;
};

/// Element i of every axis is element i modulo the given extent.
Tensor repeated(const Tensor& given, const Dims& dims) {
  if (dims == given.dims()) return given;
  Tensor result(given.dtype(), dims);
  const std::size_t width = dtype_size(given.dtype());
  for (std::int64_t i = 0; i < result.size(); ++i) {
    std::int64_t rest = i, from = 0, step = 1;
    for (std::size_t axis = dims.size(); axis-- > 0;) {
      from += rest % dims[axis] % given.dims()[axis] * step;
      rest /= dims[axis];
      step *= given.dims()[axis];
    }
    const auto at = [&](std::int64_t element) { return static_cast<std::size_t>(element) * width; };
    std::memcpy(static_cast<char*>(result.mutable_data()) + at(i),
                static_cast<const char*>(given.data()) + at(from), width);
  }
  return result;
}

bool is_valid(const ModelCase& test) {
  try {
    (void)import_onnx_bytes(test.model.SerializeAsString(), "");
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::optional<OpenCase> with_open_sizes(const ModelCase& test, std::mt19937& random) {
  std::set<std::int64_t> extents;
  for (const Tensor& input : test.inputs)
    for (const std::int64_t extent : input.dims())
      if (extent > 1) extents.insert(extent);
  std::vector<std::int64_t> order(extents.begin(), extents.end());
  std::ranges::shuffle(order, random);
  const std::size_t most = 1 + random() % 3;
  std::map<std::int64_t, std::string> symbols;
  std::optional<OpenCase> result;
  for (const std::int64_t extent : order) {
    if (symbols.size() == most) break;
    std::map<std::int64_t, std::string> more = symbols;
    more[extent] = "size_" + std::to_string(extent);
    OpenCase open{Opening(test, more).result(), {}};
    for (const auto& [size, name] : more) open.original[name] = size;
    NamedSizes larger = open.original;
    ++larger[more[extent]];
    if (!is_valid(at_sizes(open, larger))) continue;
    symbols = std::move(more);
    result = std::move(open);
  }
  return result;
}

ModelCase at_sizes(const OpenCase& open, const NamedSizes& sizes) {
  ModelCase result = open.test;
  for (int i = 0; i < result.model.graph().input_size(); ++i) {
    auto& shape = *result.model.mutable_graph()
                       ->mutable_input(i)
                       ->mutable_type()
                       ->mutable_tensor_type()
                       ->mutable_shape();
    Dims dims;
    for (auto& dim : *shape.mutable_dim()) {
      if (dim.has_dim_param()) dim.set_dim_value(sizes.at(std::string(dim.dim_param())));
      dims.push_back(dim.dim_value());
    }
    Tensor& input = result.inputs[static_cast<std::size_t>(i)];
    input = repeated(input, dims);
  }
  return result;
}

}  // namespace sylvite::fuzz

#include "frontend/onnx/model_facts.h"

#include <fmt/format.h>
#include <onnx-ml.pb.h>

#include <algorithm>
#include <set>

#include "frontend/onnx/graph_import.h"
#include "frontend/onnx/tensor.h"

namespace sylvite {
namespace {

/// "f32[batch,3,x_d2]", without the shape where there is none.
std::string declared_type(const onnx::ValueInfoProto& value) {
  const onnx::TypeProto& type = value.type();
  const bool is_number =
      type.has_tensor_type() && type.tensor_type().elem_type() != onnx::TensorProto::STRING;
  if (!is_number) return declared_port(value).type;
  const std::string dtype(dtype_name(dtype_of_onnx(type.tensor_type().elem_type())));
  if (!type.tensor_type().has_shape()) return dtype + " of any shape";
  std::string dims;
  for (int axis = 0; axis < type.tensor_type().shape().dim_size(); ++axis) {
    const auto& dim = type.tensor_type().shape().dim(axis);
    const bool is_known = dim.has_dim_value() && dim.dim_value() != -1;
    const std::string name =
        dim.dim_param().empty() ? fmt::format("{}_d{}", value.name(), axis) : dim.dim_param();
    dims += (axis > 0 ? "," : "") + (is_known ? std::to_string(dim.dim_value()) : name);
  }
  return fmt::format("{}[{}]", dtype, dims);
}

/// Bits of an element as stored; 0 for types that have no numbers.
std::int64_t stored_bits(const onnx::TensorProto& tensor) {
  try {
    return dtype_bits(dtype_of_onnx(tensor.data_type()));
  } catch (const Error&) {
    return 0;  // strings, complex numbers
  }
}

void add_weight(const onnx::TensorProto& tensor, ModelFacts& facts) {
  std::int64_t elements = 1;
  std::int64_t bits = 0;
  for (const std::int64_t extent : tensor.dims())
    if (__builtin_mul_overflow(elements, std::max<std::int64_t>(extent, 0), &elements)) elements = 0;
  if (__builtin_mul_overflow(elements, stored_bits(tensor), &bits)) bits = 0;
  ++facts.weights;
  facts.weight_elements += elements;
  facts.weight_bytes += bits / 8 + (bits % 8 != 0 ? 1 : 0);
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL) ++facts.external_weights;
}

}  // namespace

ModelFacts read_model_facts(const ParsedModel& model) {
  const onnx::ModelProto& proto = *model.proto;
  const onnx::GraphProto& graph = proto.graph();
  ModelFacts facts;
  facts.producer = proto.producer_name();
  if (!proto.producer_version().empty()) facts.producer += " " + proto.producer_version();
  facts.ir_version = proto.ir_version();
  for (const auto& opset : proto.opset_import())
    facts.opsets[opset.domain().empty() ? "ai.onnx" : opset.domain()] = opset.version();
  std::set<std::string> initializers;
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    initializers.insert(tensor.name());
    add_weight(tensor, facts);
  }
  for (const onnx::ValueInfoProto& input : graph.input())
    if (!initializers.contains(input.name()))
      facts.inputs.push_back({input.name(), declared_type(input), declared_port(input).kind});
  for (const onnx::ValueInfoProto& output : graph.output())
    facts.outputs.push_back({output.name(), declared_type(output), declared_port(output).kind});
  for (const onnx::NodeProto& node : graph.node()) {
    const bool is_own = node.domain().empty() || node.domain() == "ai.onnx";
    ++facts.operators[is_own ? node.op_type() : node.domain() + "." + node.op_type()];
  }
  facts.nodes = graph.node_size();
  facts.functions = proto.functions_size();
  return facts;
}

}  // namespace sylvite

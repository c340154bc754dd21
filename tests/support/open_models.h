#pragma once
// Small ONNX models whose sizes have names, and inputs of them.

#include <cmath>
#include <string>
#include <vector>

#include "tests/frontend/onnx/onnx_model.h"

namespace sylvite {

/// The means of 16 features of x[batch,3,lines,columns], behind convolutions with these strides.
inline std::string image_model(const std::string& lines, const std::string& columns, const Dims& strides) {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {});
  auto& shape = *graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  shape.add_dim()->set_dim_param("batch");
  shape.add_dim()->set_dim_value(3);
  shape.add_dim()->set_dim_param(lines);
  shape.add_dim()->set_dim_param(columns);
  std::string from = "x";
  for (const std::int64_t stride : strides) {
    const std::int64_t channels = from == "x" ? 3 : 16;
    std::vector<float> values(static_cast<std::size_t>(16 * channels * 9));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(0.9F * static_cast<float>(i));
    add_floats(graph, from + "_w", {16, channels, 3, 3}, values);
    onnx::NodeProto& node = add_node(graph, "Conv", {from, from + "_w"}, {from + "_features"});
    set_integers(node, "pads", {1, 1, 1, 1});
    set_integers(node, "strides", {stride, stride});
    add_node(graph, "Relu", {from + "_features"}, {from + "_active"});
    from += "_active";
  }
  add_node(graph, "GlobalAveragePool", {from}, {"y"});
  add_output(graph, "y");
  return model.SerializeAsString();
}

/// Tokens of a GrowingDecoder.
inline Tensor token_tensor(std::int64_t batch, std::int64_t count, std::int64_t first) {
  Tensor ids(DType::i64, {batch, count});
  for (std::int64_t i = 0; i < ids.size(); ++i) ids.set_int64(i, (first + i) * (first + i) % 61);
  return ids;
}

}  // namespace sylvite

#pragma once
// A layer of attention whose batch and length are open.

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/frontend/onnx/onnx_model.h"
#include "tests/runtime/test_session.h"

namespace sylvite {

constexpr std::int64_t attention_width = 64;

inline void add_open_input(onnx::GraphProto& graph, const std::string& name, std::int64_t last) {
  add_input(graph, name, {});
  auto& shape =
      *graph.mutable_input(graph.input_size() - 1)->mutable_type()->mutable_tensor_type()->mutable_shape();
  shape.add_dim()->set_dim_param("batch");
  shape.add_dim()->set_dim_param("sequence");
  if (last > 0) shape.add_dim()->set_dim_value(last);
}

/// A layer of attention over x[batch,sequence,64] plus mask[batch,sequence], with two large weights, that reads shapes
/// off its inputs.
inline std::string attention_model() {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_open_input(graph, "x", attention_width);
  add_open_input(graph, "mask", 0);
  add_output(graph, "y");
  std::vector<float> values(static_cast<std::size_t>(attention_width * 8 * attention_width));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = 0.1F * static_cast<float>(std::sin(0.3 * static_cast<double>(i)));
  add_floats(graph, "w1", {attention_width, 8 * attention_width}, values);
  add_floats(graph, "w2", {8 * attention_width, attention_width}, values);
  add_integers(graph, "zero", {0});
  add_integers(graph, "one", {1});
  add_integers(graph, "two", {2});
  add_node(graph, "MatMul", {"x", "w1"}, {"wide"});
  add_node(graph, "Relu", {"wide"}, {"active"});
  add_node(graph, "MatMul", {"active", "w2"}, {"narrow"});
  add_node(graph, "Transpose", {"narrow"}, {"keys"});
  set_integers(*graph.mutable_node(graph.node_size() - 1), "perm", {0, 2, 1});
  add_node(graph, "MatMul", {"x", "keys"}, {"scores"});
  add_node(graph, "Unsqueeze", {"mask", "one"}, {"row"});
  add_node(graph, "Add", {"scores", "row"}, {"masked"});
  add_node(graph, "Softmax", {"masked"}, {"weights"});
  add_node(graph, "MatMul", {"weights", "narrow"}, {"mixed"});
  add_node(graph, "Shape", {"x"}, {"shape"});
  add_node(graph, "Gather", {"shape", "zero"}, {"batch_size"});
  add_node(graph, "Gather", {"shape", "one"}, {"length"});
  add_integers(graph, "rest", {8, 8});
  set_integer(add_node(graph, "Concat", {"batch_size", "length", "rest"}, {"heads"}), "axis", 0);
  add_node(graph, "Reshape", {"mixed", "heads"}, {"y"});
  return model.SerializeAsString();
}

inline std::vector<Tensor> attention_inputs(std::int64_t batch, std::int64_t sequence) {
  return {sample_tensor(DType::f32, {batch, sequence, attention_width}),
          sample_tensor(DType::f32, {batch, sequence}, 1)};
}

}  // namespace sylvite

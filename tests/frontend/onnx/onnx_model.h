#pragma once
// Small ONNX models for importer tests, written by hand.

#include <onnx-ml.pb.h>

#include <string>
#include <vector>

namespace sylvite {

/// Adds a node; names inputs and outputs as given, the node after its first output.
inline onnx::NodeProto& add_node(onnx::GraphProto& graph, const std::string& op,
                                 const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs) {
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type(op);
  node.set_name("make_" + outputs.at(0));
  for (const std::string& input : inputs) node.add_input(input);
  for (const std::string& output : outputs) node.add_output(output);
  return node;
}

inline void set_integer(onnx::NodeProto& node, const std::string& name, std::int64_t value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

inline void set_text(onnx::NodeProto& node, const std::string& name, const std::string& text) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::STRING);
  attribute.set_s(text);
}

inline void set_integers(onnx::NodeProto& node, const std::string& name,
                         const std::vector<std::int64_t>& values) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INTS);
  for (const std::int64_t value : values) attribute.add_ints(value);
}

inline void set_real(onnx::NodeProto& node, const std::string& name, float value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::FLOAT);
  attribute.set_f(value);
}

inline onnx::GraphProto& set_graph(onnx::NodeProto& node, const std::string& name) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::GRAPH);
  return *attribute.mutable_g();
}

inline void add_value(onnx::ValueInfoProto& value, const std::string& name,
                      const std::vector<std::int64_t>& dims, int type = onnx::TensorProto::FLOAT) {
  value.set_name(name);
  value.mutable_type()->mutable_tensor_type()->set_elem_type(type);
  auto& shape = *value.mutable_type()->mutable_tensor_type()->mutable_shape();
  for (const std::int64_t dim : dims) shape.add_dim()->set_dim_value(dim);
}

/// The size of an axis becomes a symbol.
inline void name_axis(onnx::ValueInfoProto& value, int axis, const std::string& name) {
  value.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(axis)->set_dim_param(name);
}

inline void add_input(onnx::GraphProto& graph, const std::string& name, const std::vector<std::int64_t>& dims,
                      int type = onnx::TensorProto::FLOAT) {
  add_value(*graph.add_input(), name, dims, type);
}

inline void add_output(onnx::GraphProto& graph, const std::string& name) {
  graph.add_output()->set_name(name);
}

inline onnx::TensorProto& add_floats(onnx::GraphProto& graph, const std::string& name,
                                     const std::vector<std::int64_t>& dims,
                                     const std::vector<float>& values) {
  onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  for (const std::int64_t dim : dims) tensor.add_dims(dim);
  for (const float value : values) tensor.add_float_data(value);
  return tensor;
}

inline onnx::TensorProto& add_integers(onnx::GraphProto& graph, const std::string& name,
                                       const std::vector<std::int64_t>& values) {
  onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(static_cast<std::int64_t>(values.size()));
  for (const std::int64_t value : values) tensor.add_int64_data(value);
  return tensor;
}

/// An initializer whose four floats lie in a file.
inline onnx::TensorProto& add_external(onnx::GraphProto& graph, const std::string& name,
                                       const std::string& location) {
  onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(4);
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  auto& entry = *tensor.add_external_data();
  entry.set_key("location");
  entry.set_value(location);
  return tensor;
}

inline void set_entry(onnx::TensorProto& tensor, const std::string& key, const std::string& value) {
  auto& entry = *tensor.add_external_data();
  entry.set_key(key);
  entry.set_value(value);
}

inline onnx::ModelProto empty_model(int opset) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  auto& import = *model.add_opset_import();
  import.set_version(opset);
  model.mutable_graph()->set_name("test");
  return model;
}

/// x[2,3] -> Relu -> Add(bias) -> MatMul(weight) -> Reshape -> y
inline onnx::ModelProto small_model() {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {2, 3});
  add_output(graph, "y");
  add_floats(graph, "bias", {3}, {1, 2, 3});
  add_floats(graph, "weight", {3, 2}, {1, 0, 0, 1, 1, 1});
  add_integers(graph, "shape", {4});
  add_node(graph, "Relu", {"x"}, {"a"});
  add_node(graph, "Add", {"a", "bias"}, {"b"});
  add_node(graph, "MatMul", {"b", "weight"}, {"c"});
  add_node(graph, "Reshape", {"c", "shape"}, {"y"});
  return model;
}

}  // namespace sylvite

#pragma once
// A model with a loop whose end is found as it runs.

#include "tests/frontend/onnx/onnx_model.h"

namespace sylvite {

/// Doubles x until its sum is above a limit that the run gives, at most 20 times: the last x, and every one on the way. The
/// body reads `step`, an initializer of the model, and `limit`, which is computed.
inline onnx::ModelProto doubling() {
  onnx::ModelProto model = empty_model(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {3});
  add_input(graph, "end", {1});
  add_output(graph, "last");
  add_output(graph, "all");
  add_integers(graph, "most", {20});
  add_floats(graph, "step", {3}, {0.5F, 1, 0});
  add_node(graph, "Relu", {"end"}, {"limit"});
  onnx::NodeProto& loop = add_node(graph, "Loop", {"most", "", "x"}, {"last", "all"});
  onnx::GraphProto& body = set_graph(loop, "body");
  add_input(body, "trip", {}, onnx::TensorProto::INT64);
  add_input(body, "go", {}, onnx::TensorProto::BOOL);
  add_input(body, "now", {3});
  add_floats(body, "two", {1}, {2});
  add_node(body, "Mul", {"now", "two"}, {"twice"});
  add_node(body, "Add", {"twice", "step"}, {"next"});
  add_node(body, "ReduceSum", {"next"}, {"sum"});
  add_node(body, "Less", {"sum", "limit"}, {"more"});
  add_node(body, "Squeeze", {"more"}, {"goes_on"});
  add_node(body, "Identity", {"next"}, {"seen"});
  for (const char* name : {"goes_on", "next", "seen"}) body.add_output()->set_name(name);
  return model;
}

}  // namespace sylvite

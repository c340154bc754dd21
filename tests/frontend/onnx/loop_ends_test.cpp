// Loops that a counter ends, and those that append to lists: loops of the graph, as those of a number of trips are.

#include "frontend/onnx/loop_ends.h"

#include <gtest/gtest.h>

#include <cmath>

#include "frontend/graph/copy.h"
#include "frontend/graph/interpreter.h"
#include "frontend/onnx/imported_model.h"
#include "frontend/onnx/importer.h"
#include "tests/frontend/onnx/onnx_model.h"

namespace sylvite::loop_ends_test {
namespace {

/// h = h * w + x[i] while i + 1 < the limit, as converters write recurrences: the counter, the limit and w are states.
/// The condition reads the counter by way of `step`.
onnx::ModelProto counted(const std::vector<std::int64_t>& limit, bool limit_is_given) {
  onnx::ModelProto model = empty_model(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {5, 2});
  add_input(graph, "h", {2});
  if (limit_is_given)
    add_input(graph, "limit", {1}, onnx::TensorProto::INT64);
  else
    add_integers(graph, "limit", limit);
  add_integers(graph, "zero", {0});
  add_floats(graph, "w", {1}, {0.5F});
  for (const char* output : {"i_last", "limit_last", "w_last", "h_last", "all"}) add_output(graph, output);
  onnx::NodeProto& loop = add_node(graph, "Loop", {"", "", "zero", "limit", "w", "h"},
                                   {"i_last", "limit_last", "w_last", "h_last", "all"});
  onnx::GraphProto& body = set_graph(loop, "body");
  add_input(body, "trip", {}, onnx::TensorProto::INT64);
  add_input(body, "go", {}, onnx::TensorProto::BOOL);
  add_input(body, "i", {1}, onnx::TensorProto::INT64);
  add_input(body, "end", {1}, onnx::TensorProto::INT64);
  add_input(body, "scale", {1});
  add_input(body, "now", {2});
  add_integers(body, "step", {1});
  add_node(body, "Identity", {"end"}, {"end_passed"});
  add_node(body, "Gather", {"x", "i"}, {"picked"});
  add_node(body, "Mul", {"now", "scale"}, {"scaled"});
  add_node(body, "Squeeze", {"picked"}, {"item"});
  add_node(body, "Add", {"scaled", "item"}, {"next"});
  add_node(body, "Add", {"i", "step"}, {"i_next"});
  add_node(body, "Less", {"i_next", "end_passed"}, {"more"});
  add_node(body, "Squeeze", {"more"}, {"goes_on"});
  add_node(body, "Identity", {"next"}, {"seen"});
  for (const char* name : {"goes_on", "i_next", "end_passed", "scale", "next", "seen"})
    body.add_output()->set_name(name);
  return model;
}

Tensor floats(const Dims& dims, const std::vector<float>& values) {
  return Tensor::of(DType::f32, dims, values);
}

ImportedModel imported(const onnx::ModelProto& model) {
  return import_at(parse_model_proto(model, {""}, {}, 0), {});
}

std::int64_t count_loops(const ImportedModel& model) {
  return std::ranges::count(model.graph.nodes(), Op::loop, [](const Node& node) { return node.op; });
}

TEST(LoopEnds, ACounterMakesALoopOfTheGraph) {
  for (const std::int64_t trips : {1, 2, 4, 5}) {
    const ImportedModel model = imported(counted({trips}, false));
    EXPECT_EQ(count_loops(model), trips > 2 ? 1 : 0);
    const std::vector<Tensor> results =
        interpret(model.graph,
                  std::vector<Tensor>{floats({5, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), floats({2}, {8, -8})});
    double h0 = 8;
    double h1 = -8;
    for (std::int64_t i = 0; i < trips; ++i) {
      h0 = h0 / 2 + static_cast<double>(2 * i + 1);
      h1 = h1 / 2 + static_cast<double>(2 * i + 2);
      EXPECT_EQ(results.at(4).as_double(2 * i), h0);
      EXPECT_EQ(results.at(4).as_double(2 * i + 1), h1);
    }
    EXPECT_EQ(results.at(4).dims(), (Dims{trips, 2}));
    EXPECT_EQ(results.at(0).as_int64(0), trips);
    EXPECT_EQ(results.at(1).as_int64(0), trips);
    EXPECT_EQ(results.at(2).as_double(0), 0.5);
    EXPECT_EQ(results.at(3).as_double(0), h0);
    EXPECT_EQ(results.at(3).as_double(1), h1);
  }
}

/// Only what changes is carried from trip to trip.
TEST(LoopEnds, StatesThatNoRunChangesAreNotCarried) {
  const ImportedModel model = imported(counted({4}, false));
  const Node& loop =
      *std::ranges::find(model.graph.nodes(), Op::loop, [](const Node& node) { return node.op; });
  EXPECT_EQ(loop.attributes.integer("states"), 1);
  EXPECT_EQ(loop.attributes.integer("trips"), 4);
}

/// y = y / 2 + x[:, i], each y appended to a list, and the list joined: along a new axis, or the one there is.
onnx::ModelProto listed(bool is_new_axis, std::int64_t axis) {
  onnx::ModelProto model = empty_model(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {2, 40});
  add_input(graph, "y", {2});
  add_output(graph, "all");
  add_integers(graph, "trips", {40});
  add_floats(graph, "half", {1}, {0.5F});
  add_node(graph, "SequenceEmpty", {}, {"none"});
  onnx::NodeProto& loop = add_node(graph, "Loop", {"trips", "", "y", "none"}, {"last", "list"});
  onnx::GraphProto& body = set_graph(loop, "body");
  add_input(body, "trip", {}, onnx::TensorProto::INT64);
  add_input(body, "go", {}, onnx::TensorProto::BOOL);
  add_input(body, "now", {2});
  add_input(body, "so_far", {});
  add_node(body, "Gather", {"x", "trip"}, {"item"});
  set_integer(*body.mutable_node(0), "axis", 1);
  add_node(body, "Mul", {"now", "half"}, {"less"});
  add_node(body, "Add", {"less", "item"}, {"next"});
  add_node(body, "SequenceInsert", {"so_far", "next"}, {"longer"});
  add_node(body, "Identity", {"go"}, {"goes_on"});
  for (const char* name : {"goes_on", "next", "longer"}) body.add_output()->set_name(name);
  onnx::NodeProto& join = add_node(graph, "ConcatFromSequence", {"list"}, {"all"});
  set_integer(join, "axis", axis);
  set_integer(join, "new_axis", is_new_axis ? 1 : 0);
  return model;
}

TEST(LoopEnds, WhatIsAppendedToAListIsStacked) {
  Tensor x(DType::f32, {2, 40});
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<double>(i % 7));
  for (const auto& [is_new_axis, axis] : {std::pair{true, 0}, {true, 1}, {false, 0}}) {
    const ImportedModel model = imported(listed(is_new_axis, axis));
    EXPECT_EQ(count_loops(model), 1);
    EXPECT_LT(without_dead_nodes(model.graph).nodes().size(), 8U);
    const Tensor all = interpret(model.graph, std::vector<Tensor>{x, floats({2}, {8, -8})}).at(0);
    EXPECT_EQ(all.dims(), is_new_axis ? (axis == 0 ? Dims{40, 2} : Dims{2, 40}) : Dims{80});
    double now[] = {8, -8};
    for (std::int64_t i = 0; i < 40; ++i)
      for (std::int64_t row = 0; row < 2; ++row) {
        now[row] = now[row] / 2 + x.as_double(row * 40 + i);
        EXPECT_NEAR(all.as_double(axis == 1 ? row * 40 + i : i * 2 + row), now[row], 1e-5);
      }
  }
}

TEST(LoopEnds, ALimitThatARunGivesIsNoKnownEnd) {
  const ImportedModel model = imported(counted({}, true));
  EXPECT_EQ(count_loops(model), 0);
  EXPECT_NE(model.host, nullptr);
}

TEST(LoopEnds, ALoopWithoutEndIsRefused) {
  onnx::ModelProto model = counted({4}, false);
  model.mutable_graph()
      ->mutable_node(0)
      ->mutable_attribute(0)
      ->mutable_g()
      ->mutable_initializer(0)
      ->set_int64_data(0, 0);
  EXPECT_THROW((void)imported(model), Error);
}

}  // namespace
}  // namespace sylvite::loop_ends_test

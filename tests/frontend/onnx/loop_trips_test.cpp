// Loops whose end is found as they run: right, whether their trips are imported or models of their own.

#include "frontend/onnx/loop_trips.h"

#include <gtest/gtest.h>

#include "frontend/graph/interpreter.h"
#include "tests/frontend/onnx/loop_model.h"
#include "tests/support/interpreted_tails.h"

namespace sylvite::loop_trips_test {
namespace {

/// A list that is longer after each trip: x, then the sum of what is there so far, while that is below 100.
onnx::ModelProto growing_list() {
  onnx::ModelProto model = empty_model(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {1});
  add_output(graph, "list");
  add_integers(graph, "most", {20});
  add_floats(graph, "hundred", {1}, {100});
  onnx::NodeProto& loop = add_node(graph, "Loop", {"most", "", "x"}, {"list"});
  onnx::GraphProto& body = set_graph(loop, "body");
  add_input(body, "trip", {}, onnx::TensorProto::INT64);
  add_input(body, "go", {}, onnx::TensorProto::BOOL);
  add_input(body, "now", {1});
  add_node(body, "ReduceSum", {"now"}, {"sum"});
  add_node(body, "Concat", {"now", "sum"}, {"next"});
  set_integer(*body.mutable_node(1), "axis", 0);
  add_node(body, "Less", {"sum", "hundred"}, {"more"});
  add_node(body, "Squeeze", {"more"}, {"goes_on"});
  for (const char* name : {"goes_on", "next"}) body.add_output()->set_name(name);
  return model;
}

void expect_same(const std::vector<HostValue>& actual, const std::vector<HostValue>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Tensor& wanted = expected[i].tensor();
    const Tensor& found = actual.at(i).tensor();
    EXPECT_EQ(found.type(), wanted.type());
    for (std::int64_t e = 0; e < std::min(found.size(), wanted.size()); ++e)
      EXPECT_EQ(found.as_double(e), wanted.as_double(e));
  }
}

/// Runs it with trips as models of their own and without; how many models there were.
std::size_t models_of_trips(const onnx::ModelProto& model, const std::vector<std::vector<HostValue>>& runs) {
  const ImportedModel imported = import_at(parse_model_proto(model, {""}, {}, 0), {});
  InterpretedTails tails;
  for (const std::vector<HostValue>& given : runs) {
    const std::vector<HostValue> actual = tails.run(imported, given);
    const std::vector<HostValue> expected = interpret(imported, given);
    expect_same(actual, expected);
  }
  return tails.models();
}

Tensor floats(const std::vector<float>& values) {
  return Tensor::of(DType::f32, {static_cast<std::int64_t>(values.size())}, values);
}

TEST(LoopTrips, OneModelServesAllTripsOfAllRuns) {
  EXPECT_EQ(models_of_trips(doubling(), {{floats({1, 2, 3}), floats({50})},
                                         {floats({1, 1, 1}), floats({1e5})},
                                         {floats({1, 1, 1}), floats({-1})}}),
            1U);
}

TEST(LoopTrips, AStateMayGrow) {
  EXPECT_EQ(models_of_trips(growing_list(), {{floats({1})}, {floats({7})}, {floats({200})}}), 2U);
}

/// Where the runner has no program yet, trips are imported.
TEST(LoopTrips, AreImportedUntilABodyIsReady) {
  const ImportedModel imported = import_at(parse_model_proto(doubling(), {""}, {}, 0), {});
  InterpretedTails tails;
  int asked = 0;
  const TailRunner runner = {[&](const auto& tail, const auto& inputs) {
    return ++asked % 2 == 1 ? std::nullopt : tails.runner().run(tail, inputs);
  }};
  const std::vector<HostValue> given = {floats({1, 2, 3}), floats({1000})};
  const std::vector<HostValue> expected = interpret(imported, given);
  const std::vector<HostValue> actual = run_model(
      imported.host.get(), given, [&](const auto& tensors) { return interpret(imported.graph, tensors); },
      evaluate_node, runner);
  EXPECT_GT(asked, 4);
  expect_same(actual, expected);
}

/// x, and behind it as many rows as trips: x, x + 1 and so on. Only where the body reads what it makes longer is that copied in
/// each trip.
onnx::ModelProto growing_rows(bool is_read) {
  onnx::ModelProto model = empty_model(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {1, 2});
  add_input(graph, "trips", {1}, onnx::TensorProto::INT64);
  add_output(graph, "rows");
  onnx::NodeProto& loop = add_node(graph, "Loop", {"trips", "", "x"}, {"rows"});
  onnx::GraphProto& body = set_graph(loop, "body");
  add_input(body, "trip", {}, onnx::TensorProto::INT64);
  add_input(body, "go", {}, onnx::TensorProto::BOOL);
  body.add_input()->set_name("now");
  set_integer(add_node(body, "Cast", {"trip"}, {"number"}), "to", onnx::TensorProto::FLOAT);
  add_node(body, "Add", {"x", "number"}, {"row"});
  set_integer(add_node(body, "Concat", {"now", "row"}, {"next"}), "axis", 0);
  add_node(body, "Identity", {"go"}, {"goes_on"});
  for (const char* name : {"goes_on", "next"}) body.add_output()->set_name(name);
  if (is_read) {
    set_integer(add_node(body, "ReduceSum", {"now"}, {"sum"}), "keepdims", 0);
    body.add_output()->set_name("sum");
    loop.add_output("sums");
    add_output(graph, "sums");
  }
  return model;
}

TEST(LoopTrips, RowsBehindATensorAreJoinedOnce) {
  for (const bool is_read : {false, true}) {
    const onnx::ModelProto model = growing_rows(is_read);
    const ImportedModel imported = import_at(parse_model_proto(model, {""}, {}, 0), {});
    for (const std::int64_t trips : {0, 1, 5}) {
      if (is_read && trips == 0) continue;  // what is never made has no shape
      const Tensor x = Tensor::of<float>(DType::f32, {1, 2}, {3, 4});
      const std::vector<HostValue> given{x, Tensor::vector_i64({trips})};
      InterpretedTails tails;
      for (const std::vector<HostValue>& results : {interpret(imported, given), tails.run(imported, given)}) {
        const Tensor& rows = results.at(0).tensor();
        ASSERT_EQ(rows.dims(), (Dims{1 + trips, 2}));
        for (std::int64_t i = 1; i <= trips; ++i)
          EXPECT_EQ(rows.as_double(2 * i), 2 + static_cast<double>(i));
      }
    }
  }
}

}  // namespace
}  // namespace sylvite::loop_trips_test

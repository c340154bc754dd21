// RNN, GRU and LSTM as loops against the same operators of one step each, which have none.

#include <gmock/gmock.h>
#include <onnx-ml.pb.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/verifier.h"
#include "frontend/onnx/importer.h"
#include "tests/frontend/onnx/onnx_model.h"

namespace sylvite::recurrent_test {
namespace {

constexpr std::int64_t batch = 2;
constexpr std::int64_t width = 3;
constexpr std::int64_t hidden = 5;

std::vector<float> sample(std::int64_t count, int seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(0.9F * static_cast<float>(i) + 3.1F * static_cast<float>(seed)) / 2;
  return values;
}

Tensor tensor_of(const Dims& dims, int seed) {
  Tensor tensor(DType::f32, dims);
  const std::vector<float> values = sample(tensor.size(), seed);
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, values[static_cast<std::size_t>(i)]);
  return tensor;
}

struct Kind {
  std::string op;
  std::int64_t gates = 1;
  bool resets_after = false;
};

struct Run {
  Kind kind;
  std::string direction = "forward";
  std::vector<std::int64_t> lengths;  ///< empty: all steps
};

/// y [T, B, H], then the last states [B, H].
struct Results {
  Tensor y;
  std::vector<Tensor> states;
};

bool is_lstm(const Kind& kind) {
  return kind.op == "LSTM";
}

onnx::ModelProto model_of(const Run& run, std::int64_t steps) {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  const std::int64_t gates = run.kind.gates;
  add_input(graph, "x", {steps, batch, width});
  add_floats(graph, "w", {1, gates * hidden, width}, sample(gates * hidden * width, 1));
  add_floats(graph, "r", {1, gates * hidden, hidden}, sample(gates * hidden * hidden, 2));
  add_floats(graph, "b", {1, 2 * gates * hidden}, sample(2 * gates * hidden, 3));
  std::vector<std::string> inputs = {"x", "w", "r", "b", "", "h"};
  std::vector<std::string> outputs = {"y", "y_h"};
  if (!run.lengths.empty()) {
    add_integers(graph, "lengths", run.lengths).set_data_type(onnx::TensorProto::INT32);
    onnx::TensorProto& lengths = *graph.mutable_initializer(graph.initializer_size() - 1);
    lengths.clear_int64_data();
    for (const std::int64_t length : run.lengths) lengths.add_int32_data(static_cast<std::int32_t>(length));
    inputs[4] = "lengths";
  }
  add_input(graph, "h", {1, batch, hidden});
  if (is_lstm(run.kind)) {
    add_input(graph, "c", {1, batch, hidden});
    add_floats(graph, "p", {1, 3 * hidden}, sample(3 * hidden, 4));
    inputs.insert(inputs.end(), {"c", "p"});
    outputs.emplace_back("y_c");
  }
  onnx::NodeProto& node = add_node(graph, run.kind.op, inputs, outputs);
  set_integer(node, "hidden_size", hidden);
  if (run.kind.resets_after) set_integer(node, "linear_before_reset", 1);
  set_text(node, "direction", run.direction);
  for (const std::string& output : outputs) add_output(graph, output);
  return model;
}

bool has_loop(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node& node) { return node.op == Op::loop; });
}

Results run_model(const Run& run, const Tensor& x, const std::vector<Tensor>& states) {
  const Graph graph = import_onnx_bytes(model_of(run, x.dims()[0]).SerializeAsString(), "", {});
  verify(graph);
  EXPECT_EQ(has_loop(graph), x.dims()[0] > 2);
  std::vector<Tensor> inputs = {x};
  for (const Tensor& state : states) inputs.push_back(state.reshaped({1, batch, hidden}));
  const std::vector<Tensor> outputs = interpret(graph, inputs);
  Results results{outputs[0].reshaped({x.dims()[0], batch, hidden}), {}};
  for (std::size_t i = 1; i < outputs.size(); ++i)
    results.states.push_back(outputs[i].reshaped({batch, hidden}));
  return results;
}

/// One step after the other, for each sequence as far as it goes.
Results run_steps(const Run& run, const Tensor& x, std::vector<Tensor> states) {
  const std::int64_t steps = x.dims()[0];
  Results results{Tensor(DType::f32, {steps, batch, hidden}), {}};
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::int64_t t = run.direction == "reverse" ? steps - 1 - i : i;
    Tensor step(DType::f32, {1, batch, width});
    for (std::int64_t k = 0; k < step.size(); ++k) step.set_double(k, x.as_double(t * step.size() + k));
    const Results after = run_model({run.kind, "forward", {}}, step, states);
    for (std::int64_t k = 0; k < batch * hidden; ++k) {
      if (!run.lengths.empty() && run.lengths[static_cast<std::size_t>(k / hidden)] <= t) continue;
      results.y.set_double(t * batch * hidden + k, after.y.as_double(k));
      for (std::size_t s = 0; s < states.size(); ++s) {
        Tensor next(DType::f32, {batch, hidden});
        for (std::int64_t j = 0; j < next.size(); ++j)
          next.set_double(j, j == k ? after.states[s].as_double(j) : states[s].as_double(j));
        states[s] = next;
      }
    }
  }
  results.states = std::move(states);
  return results;
}

void expect_near(const Tensor& actual, const Tensor& expected) {
  ASSERT_EQ(actual.dims(), expected.dims());
  for (std::int64_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual.as_double(i), expected.as_double(i), 1e-5) << "element " << i;
}

void expect_as_steps(const Run& run) {
  SCOPED_TRACE(run.kind.op + " " + run.direction);
  const Tensor x = tensor_of({5, batch, width}, 5);
  std::vector<Tensor> states = {tensor_of({batch, hidden}, 6)};
  if (is_lstm(run.kind)) states.push_back(tensor_of({batch, hidden}, 7));
  const Results actual = run_model(run, x, states);
  const Results expected = run_steps(run, x, states);
  expect_near(actual.y, expected.y);
  for (std::size_t i = 0; i < states.size(); ++i) expect_near(actual.states[i], expected.states[i]);
}

TEST(RecurrentTest, LoopsComputeWhatStepsCompute) {
  for (const Kind& kind : {Kind{"RNN", 1}, Kind{"GRU", 3}, Kind{"GRU", 3, true}, Kind{"LSTM", 4}})
    for (const std::string direction : {"forward", "reverse"})
      for (const std::vector<std::int64_t>& lengths : {std::vector<std::int64_t>{}, {3, 5}})
        expect_as_steps({kind, direction, lengths});
}

/// Adds the numbers of the trips to x.
onnx::ModelProto loop_model() {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {4});
  add_integers(graph, "trips", {4}).clear_dims();
  onnx::NodeProto& node = add_node(graph, "Loop", {"trips", "", "x"}, {"y", "all"});
  onnx::GraphProto& body = set_graph(node, "body");
  add_value(*body.add_input(), "trip", {}, onnx::TensorProto::INT64);
  add_value(*body.add_input(), "goes_on", {}, onnx::TensorProto::BOOL);
  add_value(*body.add_input(), "before", {4});
  add_node(body, "Cast", {"trip"}, {"number"});
  set_integer(*body.mutable_node(0), "to", onnx::TensorProto::FLOAT);
  add_node(body, "Add", {"before", "number"}, {"after"});
  add_output(body, "goes_on");
  add_output(body, "after");
  add_output(body, "number");
  add_output(graph, "y");
  add_output(graph, "all");
  return model;
}

TEST(RecurrentTest, LoopsOfKnownTripsAreLoops) {
  const Graph graph = import_onnx_bytes(loop_model().SerializeAsString(), "", {});
  verify(graph);
  EXPECT_TRUE(has_loop(graph));
  const std::vector<Tensor> results = interpret(graph, {Tensor(DType::f32, {4})});
  EXPECT_EQ(results[0].as_double(3), 0 + 1 + 2 + 3);
  EXPECT_EQ(results[1].as_double(2), 2);
}

TEST(RecurrentTest, LinearAttentionIsALoop) {
  onnx::ModelProto model = empty_model(27);
  onnx::GraphProto& graph = *model.mutable_graph();
  for (const char* name : {"q", "k", "v", "decay"}) add_input(graph, name, {1, 5000, 8});
  add_input(graph, "beta", {1, 5000, 2});
  add_output(graph, "y");
  onnx::NodeProto& node = add_node(graph, "LinearAttention", {"q", "k", "v", "", "decay", "beta"}, {"y"});
  set_integer(node, "q_num_heads", 2);
  set_integer(node, "kv_num_heads", 2);
  const Graph imported = import_onnx_bytes(model.SerializeAsString(), "", {});
  verify(imported);
  EXPECT_TRUE(has_loop(imported));
  EXPECT_LT(imported.nodes().size(), 50U);
}

}  // namespace
}  // namespace sylvite::recurrent_test

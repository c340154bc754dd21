#include "frontend/onnx/model_states.h"

#include <gmock/gmock.h>

#include <cmath>

#include "base/error.h"
#include "frontend/graph/interpreter.h"
#include "frontend/onnx/imported_model.h"
#include "frontend/onnx/importer.h"
#include "sylvite/graph_text.h"
#include "tests/frontend/onnx/onnx_model.h"

namespace sylvite::model_states_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

/// Rows [batch, 1, 4] at `at` into caches of 6 rows, whose sums are the output.
onnx::ModelProto cache_model() {
  onnx::ModelProto model = empty_model(24);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "rows", {1, 1, 4});
  add_input(graph, "at", {1}, onnx::TensorProto::INT64);
  for (const std::string name : {"key", "value"}) {
    add_input(graph, "past_key_values.0." + name, {1, 6, 4});
    auto& shape = *graph.mutable_input(graph.input_size() - 1)->mutable_type()->mutable_tensor_type();
    shape.mutable_shape()->mutable_dim(0)->set_dim_param("batch");
    onnx::NodeProto& node =
        add_node(graph, "TensorScatter", {"past_key_values.0." + name, "rows", "at"}, {"present.0." + name});
    set_integer(node, "axis", 1);
  }
  add_node(graph, "Add", {"present.0.key", "present.0.value"}, {"sum"});
  add_output(graph, "present.0.key");
  add_output(graph, "sum");
  add_output(graph, "present.0.value");
  return model;
}

ImportOptions with_states(const std::map<std::string, std::string>& states) {
  ImportOptions options;
  options.states = states;
  options.dims = {{"batch", 1}};
  return options;
}

std::string refusal(const onnx::ModelProto& model, const ImportOptions& options) {
  try {
    (void)import_onnx_bytes(model.SerializeAsString(), "", options);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ModelStates, NamesArePairedOneByOneByPatternOrAsUsual) {
  const onnx::GraphProto graph = cache_model().graph();
  const auto both = ElementsAre(Pair("past_key_values.0.key", "present.0.key"),
                                Pair("past_key_values.0.value", "present.0.value"));
  EXPECT_THAT(read_model_states(graph, {}), testing::IsEmpty());
  EXPECT_THAT(read_model_states(graph, with_states({{"past_key_values.*", "present.*"}})), both);
  ImportOptions usual;
  usual.usual_states = true;
  EXPECT_THAT(read_model_states(graph, usual), both);
  EXPECT_THAT(read_model_states(graph, with_states({{"past_key_values.0.key", "present.0.key"}})),
              ElementsAre(Pair("past_key_values.0.key", "present.0.key")));
}

TEST(ModelStates, ModelsAreImportedWithTheirStates) {
  const std::string bytes = cache_model().SerializeAsString();
  const Graph graph = import_onnx_bytes(bytes, "", with_states({{"past_key_values.*", "present.*"}}));
  EXPECT_EQ(graph.states, (std::vector<State>{{2, 0}, {3, 2}}));
  const ParsedModel parsed = parse_model_bytes(bytes, "", with_states({{"past_key_values.*", "present.*"}}));
  EXPECT_EQ(parsed.sizes.inputs.size(), 2U);
  std::vector<Tensor> states = zero_states(graph);
  Tensor rows(DType::f32, {1, 1, 4});
  for (int step = 0; step < 3; ++step) {
    for (int i = 0; i < 4; ++i) rows.set_double(i, step + 1);
    const Tensor sum = interpret(graph, {rows, Tensor::vector_i64({step})}, states).at(0);
    for (std::int64_t row = 0; row < 6; ++row)
      EXPECT_EQ(sum.as_double(row * 4), row <= step ? 2 * (row + 1) : 0) << step << " " << row;
  }
}

TEST(ModelStates, BadPairsAreOneMessage) {
  const onnx::ModelProto model = cache_model();
  const std::string key = "past_key_values.0.key";
  EXPECT_THAT(
      refusal(model, with_states({{"past_key_values.0.kye", "present.0.key"}})),
      HasSubstr("the model has no input 'past_key_values.0.kye'; did you mean past_key_values.0.key?"));
  EXPECT_THAT(refusal(model, with_states({{key, "present.0.kee"}})),
              HasSubstr("the model has no output 'present.0.kee'; did you mean present.0.key?"));
  EXPECT_THAT(
      refusal(model, with_states({{key, "present.0.key"}, {"past_key_values.0.value", "present.0.key"}})),
      HasSubstr("output 'present.0.key' is in two pairs"));
  EXPECT_THAT(refusal(model, with_states({{"past_*", "present.0.key"}})), HasSubstr("* on one side"));
  EXPECT_THAT(refusal(model, with_states({{"mask_*", "present_*"}})),
              HasSubstr("no input is called 'mask_*'"));
  EXPECT_THAT(refusal(model, with_states({{"rows", "sum"}})), HasSubstr("a state keeps its type"));
  ImportOptions open = with_states({{"past_key_values.*", "present.*"}});
  open.dims.clear();
  EXPECT_THAT(refusal(model, open), HasSubstr("has an open size: give it one number, as in --dims batch=1"));
  ImportOptions usual;
  usual.usual_states = true;
  EXPECT_THAT(refusal(small_model(), usual), HasSubstr("no input and output have usual names"));
}

/// x [steps, 1, 3] -> y, and the states of two LSTM, GRU or RNN cells.
onnx::ModelProto recurrent_model(const std::string& op, std::int64_t gates, std::int64_t steps) {
  onnx::ModelProto model = empty_model(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {steps, 1, 3});
  add_input(graph, "h0", {1, 1, 2});
  const auto weights = [&](const std::string& name, std::int64_t columns) {
    std::vector<float> values(static_cast<std::size_t>(gates * 2 * columns));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = (static_cast<float>(i % 7) - 3) / 5;
    add_floats(graph, name, {1, gates * 2, columns}, values);
  };
  weights("w", 3);
  weights("r", 2);
  std::vector<std::string> inputs{"x", "w", "r", "", "", "h0"};
  std::vector<std::string> outputs{"y", "hn"};
  for (const char* name : {"y", "hn"}) add_output(graph, name);
  if (op == "LSTM") {
    add_input(graph, "c0", {1, 1, 2});
    inputs.emplace_back("c0");
    outputs.emplace_back("cn");
    add_output(graph, "cn");
  }
  set_integer(add_node(graph, op, inputs, outputs), "hidden_size", 2);
  return model;
}

TEST(ModelStates, RecurrentNetworksGoStepByStep) {
  const std::vector<std::pair<std::string, std::int64_t>> cells = {{"LSTM", 4}, {"GRU", 3}, {"RNN", 1}};
  for (const auto& [op, gates] : cells) {
    ImportOptions usual;
    usual.usual_states = true;
    const auto imported = [&](std::int64_t steps) {
      return import_onnx_bytes(recurrent_model(op, gates, steps).SerializeAsString(), "", usual);
    };
    const auto rows = [](std::int64_t first, std::int64_t count) {
      Tensor x(DType::f32, {count, 1, 3});
      for (std::int64_t i = 0; i < x.size(); ++i)
        x.set_double(i, static_cast<double>((first * 3 + i) % 5) - 2);
      return x;
    };
    const Graph by_steps = imported(1);
    const Graph whole = imported(6);
    std::vector<Tensor> at_once = zero_states(whole);
    std::vector<Tensor> states = zero_states(by_steps);
    const Tensor expected = interpret(whole, {rows(0, 6)}, at_once).at(0);
    for (std::int64_t step = 0; step < 6; ++step) {
      const Tensor y = interpret(by_steps, {rows(step, 1)}, states).at(0);
      for (std::int64_t i = 0; i < 2; ++i)
        EXPECT_NEAR(y.as_double(i), expected.as_double(step * 2 + i), 1e-6) << op << " " << step;
    }
  }
}

/// GroupQueryAttention of `tokens` new tokens, with caches of six where `room`; else they are all that there is.
onnx::ModelProto grouped_model(std::int64_t tokens, bool room) {
  onnx::ModelProto model = empty_model(18);
  auto& microsoft = *model.add_opset_import();
  microsoft.set_domain("com.microsoft");
  microsoft.set_version(1);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "qkv", {1, tokens, 64});
  std::vector<std::string> inputs = {"qkv", "", "", "", "", "lengths", "total"};
  if (room) {
    for (const int i : {3, 4}) {
      inputs[static_cast<std::size_t>(i)] = i == 3 ? "past_key" : "past_value";
      add_input(graph, inputs[static_cast<std::size_t>(i)], {1, 2, 6, 8});
    }
    add_input(graph, "lengths", {1}, onnx::TensorProto::INT32);
    add_input(graph, "total", {}, onnx::TensorProto::INT32);
  } else {
    for (const auto& [name, value] : {std::pair("lengths", tokens - 1), std::pair("total", tokens)})
      add_integers(graph, name, {value});
  }
  onnx::NodeProto& node =
      add_node(graph, "GroupQueryAttention", inputs, {"y", "present_key", "present_value"});
  node.set_domain("com.microsoft");
  set_integer(node, "num_heads", 4);
  set_integer(node, "kv_num_heads", 2);
  for (const char* name : {"y", "present_key", "present_value"}) add_output(graph, name);
  return model;
}

/// Where the new tokens stand is for the run to say, and so is how many there are then.
TEST(ModelStates, GroupedCachesTakeTokenByToken) {
  const auto imported = [](std::int64_t tokens, bool room) {
    ImportOptions options;
    options.usual_states = room;
    return import_onnx_bytes(grouped_model(tokens, room).SerializeAsString(), "", options);
  };
  const auto rows = [](std::int64_t first, std::int64_t count) {
    Tensor x(DType::f32, {1, count, 64});
    for (std::int64_t i = 0; i < x.size(); ++i)
      x.set_double(i, std::sin(static_cast<double>(first * 64 + i)));
    return x;
  };
  const Tensor expected = interpret(imported(6, false), {rows(0, 6)}).at(0);
  for (const std::int64_t count : {1, 2}) {
    const Graph steps = imported(count, true);
    ASSERT_EQ(steps.states.size(), 2U);
    std::vector<Tensor> states = zero_states(steps);
    for (std::int64_t at = 0; at < 6; at += count) {
      Tensor lengths(DType::i32, {1});
      lengths.set_int64(0, at + count - 1);
      Tensor total(DType::i32, {});
      total.set_int64(0, at + count);
      const Tensor y = interpret(steps, {rows(at, count), lengths, total}, states).at(0);
      for (std::int64_t i = 0; i < y.size(); ++i)
        EXPECT_NEAR(y.as_double(i), expected.as_double(at * 32 + i), 1e-5) << at << " " << i;
    }
    const std::string text = graph_text(steps);
    EXPECT_THAT(text, HasSubstr("scatter_elements"));
    EXPECT_THAT(text, testing::Not(HasSubstr("gather_elements")));
  }
}

TEST(ModelStates, WithStepsOnTheHostAreRefused) {
  onnx::ModelProto model = cache_model();
  add_node(*model.mutable_graph(), "NonZero", {"rows"}, {"places"});
  add_output(*model.mutable_graph(), "places");
  const ParsedModel parsed =
      parse_model_bytes(model.SerializeAsString(), "", with_states({{"past_key_values.*", "present.*"}}));
  EXPECT_THROW((void)import_at(parsed, first_sizes(parsed.sizes)), UnsupportedError);
}

}  // namespace
}  // namespace sylvite::model_states_test

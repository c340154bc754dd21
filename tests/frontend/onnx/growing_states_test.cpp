// Caches that a concat extends, as states with room for the longest: token by token against the whole sequence at once.

#include "frontend/onnx/growing_states.h"

#include <gmock/gmock.h>

#include <cmath>

#include "base/error.h"
#include "frontend/graph/interpreter.h"
#include "frontend/onnx/importer.h"
#include "sylvite/graph_text.h"
#include "tests/support/growing_decoder.h"

namespace sylvite::growing_states_test {
namespace {

using testing::HasSubstr;
using Style = GrowingDecoder::Style;

constexpr std::int64_t capacity = 24;

GrowingDecoder small_decoder(Style style) {
  GrowingDecoder decoder;
  decoder.style = style;
  decoder.head = 4;
  decoder.positions = 40;
  return decoder;
}

ImportOptions at_size(std::int64_t sequence) {
  ImportOptions options;
  options.usual_states = true;
  options.dims = {{"batch", 1}, {"sequence", sequence}, {"past_sequence", {1, capacity}}};
  return options;
}

Graph imported(const GrowingDecoder& decoder, std::int64_t sequence) {
  ImportOptions options = at_size(sequence);
  if (!decoder.has_past) {
    options.usual_states = false;
    options.dims.erase("past_sequence");
  }
  return import_onnx_bytes(decoder.model().SerializeAsString(), "", options);
}

/// Of tokens from `first` on. The mask is as long as `length` where that is more than they are.
std::vector<Tensor> inputs_of(Style style, std::int64_t first, std::int64_t count, std::int64_t length) {
  Tensor ids(DType::i64, {1, count});
  Tensor positions(DType::i64, {1, count});
  for (std::int64_t i = 0; i < count; ++i) {
    ids.set_int64(i, (first + i) * (first + i) % 61);
    positions.set_int64(i, first + i);
  }
  if (style == Style::ranges) return {ids};
  Tensor mask(DType::i64, {1, length});
  for (std::int64_t i = 0; i < first + count; ++i) mask.set_int64(i, 1);
  return {ids, positions, mask};
}

class GrowingStates : public testing::TestWithParam<Style> {};

TEST_P(GrowingStates, GoOnFromRunToRun) {
  const GrowingDecoder decoder = small_decoder(GetParam());
  GrowingDecoder whole = decoder;
  whole.has_past = false;
  const Tensor expected =
      interpret(imported(whole, capacity), inputs_of(GetParam(), 0, capacity, capacity)).at(0);
  std::vector<Tensor> states = zero_states(imported(decoder, 1));
  std::int64_t at = 0;
  for (const std::int64_t count : {5, 1, 1, 3, 1, 7, 6}) {
    const Graph graph = imported(decoder, count);
    const Tensor logits = interpret(graph, inputs_of(GetParam(), at, count, capacity), states).at(0);
    for (std::int64_t i = 0; i < logits.size(); ++i)
      ASSERT_NEAR(logits.as_double(i), expected.as_double(at * 61 + i), 1e-4) << at << " " << i;
    at += count;
    EXPECT_EQ(states.back().as_int64(0), at);
  }
}

TEST_P(GrowingStates, HaveTheirCapacityAndALength) {
  const Graph graph = imported(small_decoder(GetParam()), 1);
  ASSERT_EQ(graph.states.size(), 5U);
  for (const State& state : graph.states) {
    const TensorType& type = graph.type(graph.inputs[state.input]);
    EXPECT_EQ(type, graph.type(graph.outputs[state.output]));
    EXPECT_EQ(type.to_string(), type.rank() == 0 ? "i64[]" : "f32[1,2,24,4]");
  }
  EXPECT_EQ(graph.value(graph.inputs[graph.states.back().input]).name, "past_sequence");
  const std::string text = graph_text(graph);
  EXPECT_THAT(text, HasSubstr("scatter_elements(%past_key_values.0.key, "));
  EXPECT_THAT(text, testing::Not(HasSubstr("concat")));
}

INSTANTIATE_TEST_SUITE_P(Styles, GrowingStates, testing::Values(Style::tables, Style::ranges));

TEST(GrowingStatesRefusals, AreOneMessage) {
  const auto refusal = [](const GrowingDecoder& decoder, const ImportOptions& options) -> std::string {
    try {
      (void)import_onnx_bytes(decoder.model().SerializeAsString(), "", options);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  const GrowingDecoder decoder = small_decoder(Style::tables);
  ImportOptions open = at_size(1);
  open.dims.erase("past_sequence");
  EXPECT_THAT(refusal(decoder, open), HasSubstr("grows by 'past_sequence': say how long it may become"));
  EXPECT_THAT(refusal(decoder, at_size(30)), HasSubstr("30 new entries are more than states have room for"));
  ImportOptions fixed = at_size(1);
  fixed.dims["past_sequence"] = 8;
  fixed.dims["past_sequence + sequence"] = 9;
  EXPECT_THAT(refusal(decoder, fixed), HasSubstr("a state keeps its type"));
}

/// Attention of opset 24 over what three inputs [1, n, 16] give; with caches that it extends, or without.
onnx::ModelProto attention_model(bool has_past) {
  onnx::ModelProto model = empty_model(24);
  onnx::GraphProto& graph = *model.mutable_graph();
  std::vector<std::string> inputs = {"q", "k", "v", ""};
  std::vector<std::string> outputs = {"y"};
  for (int i = 0; i < 3; ++i) {
    add_input(graph, inputs[static_cast<std::size_t>(i)], {1, 0, i == 0 ? 16 : 8});
    name_axis(*graph.mutable_input(i), 1, "sequence");
  }
  add_output(graph, "y");
  for (const std::string name : {"key", "value"}) {
    if (!has_past) break;
    inputs.push_back("past_" + name);
    outputs.push_back("present_" + name);
    add_input(graph, "past_" + name, {1, 2, 0, 4});
    name_axis(*graph.mutable_input(graph.input_size() - 1), 2, "past_length");
    add_value(*graph.add_output(), "present_" + name, {1, 2, 0, 4});
    name_axis(*graph.mutable_output(graph.output_size() - 1), 2, "total_length");
  }
  onnx::NodeProto& node = add_node(graph, "Attention", inputs, outputs);
  set_integer(node, "is_causal", 1);
  set_integer(node, "q_num_heads", 4);
  set_integer(node, "kv_num_heads", 2);
  return model;
}

TEST(GrowingAttention, GoesOnFromRunToRun) {
  const auto imported = [](bool has_past, std::int64_t count) {
    ImportOptions options;
    if (has_past) options.states = {{"past_*", "present_*"}};
    options.dims = {{"sequence", count}};
    if (has_past) options.dims["past_length"] = {1, 12};
    return import_onnx_bytes(attention_model(has_past).SerializeAsString(), "", options);
  };
  const auto rows = [](std::int64_t first, std::int64_t count) {
    std::vector<Tensor> inputs;
    for (const std::int64_t width : {16, 8, 8}) {
      Tensor& x = inputs.emplace_back(DType::f32, Dims{1, count, width});
      for (std::int64_t i = 0; i < x.size(); ++i)
        x.set_double(i, std::sin(0.7 * static_cast<double>(first * width + i + width)));
    }
    return inputs;
  };
  const Tensor expected = interpret(imported(false, 12), rows(0, 12)).at(0);
  std::vector<Tensor> states = zero_states(imported(true, 1));
  std::int64_t at = 0;
  for (const std::int64_t count : {4, 1, 1, 3, 3}) {
    const Graph graph = imported(true, count);
    EXPECT_THAT(graph_text(graph), testing::Not(HasSubstr("concat")));
    const Tensor y = interpret(graph, rows(at, count), states).at(0);
    for (std::int64_t i = 0; i < y.size(); ++i)
      ASSERT_NEAR(y.as_double(i), expected.as_double(at * 16 + i), 1e-5) << at << " " << i;
    at += count;
  }
}

/// past [1,past,4] and rows [1,n,4] -> their concat, and `op` of it.
std::string one_cache(const std::string& op, const std::vector<std::int64_t>& axes) {
  onnx::ModelProto model = empty_model(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "past", {1, 0, 4});
  name_axis(*graph.mutable_input(0), 1, "past_length");
  add_input(graph, "rows", {1, 2, 4});
  set_integer(add_node(graph, "Concat", {"past", "rows"}, {"present"}), "axis", 1);
  onnx::NodeProto& node = add_node(graph, op, {"present"}, {"y"});
  if (!axes.empty()) set_integers(node, op == "Transpose" ? "perm" : "axes", axes);
  add_output(graph, "y");
  add_value(*graph.add_output(), "present", {1, 0, 4});
  name_axis(*graph.mutable_output(1), 1, "total_length");
  return model.SerializeAsString();
}

ImportOptions with_one_cache() {
  ImportOptions options;
  options.states = {{"past", "present"}};
  options.dims = {{"past_length", {1, 6}}};
  return options;
}

TEST(GrowingStatesFolds, TakeWhatCountsAlone) {
  for (const std::string op : {"ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1"}) {
    const Graph graph = import_onnx_bytes(one_cache(op, {1}), "", with_one_cache());
    std::vector<Tensor> states = zero_states(graph);
    double expected = op == "ReduceProd" ? 1 : op == "ReduceL1" ? 0 : op == "ReduceMax" ? -1e9 : 1e9;
    for (int step = 1; step <= 3; ++step) {
      Tensor rows(DType::f32, {1, 2, 4});
      const double value = op == "ReduceMax" ? -step : step;
      for (std::int64_t i = 0; i < 8; ++i) rows.set_double(i, value);
      if (op == "ReduceProd") expected *= value * value;
      if (op == "ReduceL1") expected += 2 * value;
      if (op == "ReduceMax") expected = std::max(expected, value);
      if (op == "ReduceMin") expected = std::min(expected, value);
      const Tensor y = interpret(graph, {rows}, states).at(0);
      for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(y.as_double(i), expected) << op << " " << step;
    }
  }
}

TEST(GrowingStatesFolds, WhatCannotBeIsNamed) {
  const auto refusal = [](const std::string& model) -> std::string {
    try {
      (void)import_onnx_bytes(model, "", with_one_cache());
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal(one_cache("Relu", {})), HasSubstr("output 'y' is f32[1,past_length+2,4]: it grows"));
  EXPECT_THAT(refusal(one_cache("ReduceMean", {1})), HasSubstr("past_length"));
  EXPECT_THAT(refusal(one_cache("Flatten", {})), HasSubstr("regroups"));
}

}  // namespace
}  // namespace sylvite::growing_states_test

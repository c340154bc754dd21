// Attention of the default domain: which keys queries see. Queries and keys are zeros, so that results are means of the values
// that are seen.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/graph/interpreter.h"
#include "frontend/onnx/importer.h"
#include "tests/frontend/onnx/onnx_model.h"

namespace sylvite::attention_test {
namespace {

using testing::ElementsAre;
using testing::FloatEq;

/// Of as many queries on four keys, whose values are 1, 2, 4 and 8.
struct OneAttention {
  onnx::ModelProto model = empty_model(25);
  std::vector<Tensor> inputs;

  explicit OneAttention(std::int64_t queries) {
    onnx::GraphProto& graph = *model.mutable_graph();
    const auto zeros = [&](const char* name, std::int64_t length) {
      add_floats(graph, name, {1, 1, length, 1}, std::vector<float>(static_cast<std::size_t>(length), 0));
    };
    zeros("q", queries);
    zeros("k", 4);
    add_floats(graph, "v", {1, 1, 4, 1}, {1, 2, 4, 8});
    add_node(graph, "Attention", {"q", "k", "v"}, {"y"});
    add_output(graph, "y");
  }
  onnx::NodeProto& node() { return *model.mutable_graph()->mutable_node(0); }
  OneAttention& with(const char* name, std::int64_t value) {
    set_integer(node(), name, value);
    return *this;
  }
  /// The lengths of the keys, known or not.
  OneAttention& lengths(std::int64_t value, bool is_known) {
    for (int i = 0; i < 3; ++i) node().add_input("");
    node().add_input("lengths");
    if (is_known) {
      add_integers(*model.mutable_graph(), "lengths", {value});
    } else {
      add_input(*model.mutable_graph(), "lengths", {1}, onnx::TensorProto::INT64);
      inputs.push_back(Tensor::vector_i64({value}));
    }
    return *this;
  }
  /// A mask of [2, 4], known or not.
  OneAttention& mask(const std::vector<std::int64_t>& values) {
    node().add_input("mask");
    add_input(*model.mutable_graph(), "mask", {2, 4}, onnx::TensorProto::BOOL);
    inputs.emplace_back(DType::boolean, Dims{2, 4});
    for (std::int64_t i = 0; i < 8; ++i) inputs.back().set_int64(i, values[static_cast<std::size_t>(i)]);
    return *this;
  }
  [[nodiscard]] std::vector<float> run() const {
    const Tensor y = interpret(import_onnx_bytes(model.SerializeAsString(), ""), inputs).at(0);
    const auto view = y.view<float>();
    return {view.begin(), view.end()};
  }
};

TEST(OnnxAttentionTest, WindowsAreKeysBesideTheQuery) {
  EXPECT_THAT(OneAttention(3).with("left_window_size", 1).with("right_window_size", 0).run(),
              ElementsAre(1, FloatEq(1.5), 3));
  EXPECT_THAT(OneAttention(2).with("right_window_size", 1).run(), ElementsAre(1.5F, FloatEq(7 / 3.0F)));
  EXPECT_THAT(OneAttention(2).with("left_window_size", 0).run(), ElementsAre(3.75F, FloatEq(14 / 3.0F)));
  // Of queries that see no later keys the right bound is nothing.
  EXPECT_THAT(OneAttention(3).with("right_window_size", 2).with("is_causal", 1).run(),
              ElementsAre(1, 1.5F, FloatEq(7 / 3.0F)));
}

TEST(OnnxAttentionTest, QueriesAreTheLastBeforeTheEndOfKeys) {
  for (const bool is_known : {true, false}) {
    EXPECT_THAT(OneAttention(2).with("is_causal", 1).lengths(3, is_known).run(),
                ElementsAre(1.5F, FloatEq(7 / 3.0F)));
    EXPECT_THAT(OneAttention(2).lengths(2, is_known).run(), ElementsAre(1.5F, 1.5F));
  }
}

TEST(OnnxAttentionTest, QueriesThatSeeNoKeysGiveZeros) {
  for (const bool is_known : {true, false})
    EXPECT_THAT(OneAttention(2).with("is_causal", 1).lengths(1, is_known).run(), ElementsAre(0, 1));
  EXPECT_THAT(OneAttention(2).mask({0, 0, 0, 0, 0, 1, 1, 0}).run(), ElementsAre(0, 3));
  // The mask leaves the first query a key behind it only.
  EXPECT_THAT(OneAttention(2).mask({0, 1, 0, 0, 1, 0, 1, 0}).with("is_causal", 1).run(), ElementsAre(0, 1));
}

TEST(OnnxAttentionTest, WhatIsShownIsBeforeOrBehindEachStep) {
  for (const auto& [mode, expected] : {std::pair(0, 2.0F), std::pair(1, 0.5F * 0.99932927F)}) {
    onnx::ModelProto model = empty_model(24);
    onnx::GraphProto& graph = *model.mutable_graph();
    add_floats(graph, "q", {1, 1, 1, 1}, {2});
    add_floats(graph, "k", {1, 1, 1, 1}, {1});
    add_node(graph, "Attention", {"q", "k", "k"}, {"y", "", "", "shown"});
    set_integer(*graph.mutable_node(0), "qk_matmul_output_mode", mode);
    set_real(*graph.mutable_node(0), "softcap", 0.5);
    add_output(graph, "shown");
    const Tensor shown = interpret(import_onnx_bytes(model.SerializeAsString(), ""), {}).at(0);
    EXPECT_FLOAT_EQ(shown.view<float>()[0], expected) << mode;
  }
}

}  // namespace
}  // namespace sylvite::attention_test

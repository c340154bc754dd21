#include "frontend/onnx/known_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "frontend/onnx/imported_model.h"
#include "tests/frontend/onnx/onnx_model.h"

namespace sylvite::known_texts_test {
namespace {

using testing::HasSubstr;

onnx::NodeProto& add_encoder(onnx::GraphProto& graph, const std::string& op, const std::string& keys,
                             const std::string& x, const std::string& y,
                             const std::vector<std::string>& texts) {
  onnx::NodeProto& node = add_node(graph, op, {x}, {y});
  node.set_domain("ai.onnx.ml");
  onnx::AttributeProto& names = *node.add_attribute();
  names.set_name(keys);
  names.set_type(onnx::AttributeProto::STRINGS);
  for (const std::string& text : texts) names.add_strings(text);
  return node;
}

/// Columns "a" and "b" of texts side by side, as flags of one list of categories, and "b" as numbers.
onnx::ModelProto columns(bool is_normalised) {
  onnx::ModelProto model = empty_model(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  for (const char* name : {"a", "b"}) add_input(graph, name, {3, 1}, onnx::TensorProto::STRING);
  for (int i = 0; i < 2; ++i) name_axis(*graph.mutable_input(i), 0, "rows");
  add_node(graph, "Identity", {"a"}, {"first"});
  set_integer(add_node(graph, "Concat", {"first", "b"}, {"both"}), "axis", 1);
  add_encoder(graph, "OneHotEncoder", "cats_strings", "both", "flags", {"yes", "no"});
  onnx::NodeProto& numbers =
      add_encoder(graph, "CategoryMapper", "cats_strings", "b", "numbers", {"no", "perhaps"});
  set_integers(numbers, "cats_int64s", {4, 5});
  set_integer(numbers, "default_int64", 6);
  if (is_normalised) {
    add_node(graph, "Flatten", {"b"}, {"list"});
    add_node(graph, "StringNormalizer", {"list"}, {"normal"});
    add_output(graph, "normal");
  }
  add_output(graph, "flags");
  add_output(graph, "numbers");
  return model;
}

StringTensor column(const std::vector<std::string>& texts) {
  return {{static_cast<std::int64_t>(texts.size()), 1}, texts};
}

TEST(KnownTexts, LookupsOfInputsAreNoStepsOnTheHost) {
  const ParsedModel parsed = parse_model_proto(columns(false), {""}, {}, 0);
  ASSERT_EQ(parsed.sizes.symbols.size(), 1U);
  for (const std::int64_t rows : {1, 4}) {
    const ImportedModel model = import_at(parsed, {rows});
    EXPECT_EQ(model.host->inputs().at(0).kind, ValueKind::strings);
    EXPECT_TRUE(model.host->steps().empty());
    const auto count = static_cast<std::size_t>(rows);
    std::vector<std::string> a(count, "yes"), b(count, "perhaps");
    a[count - 1] = "";
    b[0] = "no";
    const auto outputs = interpret(model, {HostValue(column(a)), HostValue(column(b))});
    const Tensor& flags = outputs.at(0).tensor();
    EXPECT_EQ(flags.dims(), (Dims{rows, 2, 2}));
    for (std::int64_t row = 0; row < rows; ++row) {
      EXPECT_EQ(flags.as_double(4 * row), row + 1 < rows ? 1 : 0);
      EXPECT_EQ(flags.as_double(4 * row + 1), 0);
      EXPECT_EQ(flags.as_double(4 * row + 3), row == 0 ? 1 : 0);
      EXPECT_EQ(outputs.at(1).tensor().as_int64(row), row == 0 ? 4 : 5);
    }
  }
}

TEST(KnownTexts, OthersStayTexts) {
  EXPECT_NE(KnownTexts::of(columns(false).graph()), nullptr);
  EXPECT_EQ(KnownTexts::of(columns(true).graph()), nullptr);
  onnx::ModelProto moved = columns(false);
  add_output(*moved.mutable_graph(), "both");
  EXPECT_EQ(KnownTexts::of(moved.graph()), nullptr);
}

TEST(KnownTexts, WhatIsNoKeyHasTheLastPlace) {
  const auto texts = KnownTexts::of(columns(false).graph());
  EXPECT_EQ(texts->places_of(column({"no", "perhaps", "yes", "", "yess", "????????"})).to_int64s(),
            (std::vector<std::int64_t>{0, 1, 2, 3, 3, 3}));
  EXPECT_EQ(texts->list()->size(), 4U);
}

}  // namespace
}  // namespace sylvite::known_texts_test

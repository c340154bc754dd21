// Tails are right at every count that a run finds, and few models serve many of them.

#include "frontend/onnx/tail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/graph/interpreter.h"
#include "tests/frontend/onnx/onnx_model.h"
#include "tests/support/interpreted_tails.h"

namespace sylvite::tail_test {
namespace {

/// Reads so many numbers `x`, and gives `y`, which the nodes make that are to come.
onnx::ModelProto model_of_numbers(std::int64_t count) {
  onnx::ModelProto model = empty_model(13);
  add_input(*model.mutable_graph(), "x", {count});
  add_output(*model.mutable_graph(), "y");
  return model;
}

/// Runs `model` with each of these values of x, and compares with steps done one by one; how many tails there were.
std::size_t models_for(const onnx::ModelProto& model, const std::vector<std::vector<float>>& runs) {
  const ParsedModel parsed = parse_model_proto(model, {""}, {}, 0);
  InterpretedTails tails;
  for (const std::vector<float>& x : runs) {
    Dims dims = {static_cast<std::int64_t>(x.size())};
    if (parsed.sizes.inputs[0].axes.size() == 2) dims = {dims[0] / 2, 2};
    const Tensor given = Tensor::of(DType::f32, dims, x);
    Sizes sizes;
    SizeReader(parsed.sizes).read(1, [&](std::size_t) { return GivenType{DType::f32, dims}; }, sizes);
    const ImportedModel imported = import_at(parsed, sizes);
    const std::vector<HostValue> actual = tails.run(imported, {given});
    const std::vector<HostValue> expected = interpret(imported, {given});
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const Tensor& wanted = expected[i].tensor();
      const Tensor& found = actual.at(i).tensor();
      EXPECT_EQ(found.type(), wanted.type());
      for (std::int64_t e = 0; e < std::min(found.size(), wanted.size()); ++e)
        EXPECT_NEAR(found.as_double(e), wanted.as_double(e), 1e-6);
    }
  }
  return tails.models();
}

/// The values of x that are above zero, each in a row of its own with its double: [count, 2], multiplied by a matrix.
void add_positive_rows(onnx::GraphProto& graph, const std::string& x, const std::string& y) {
  add_node(graph, "Relu", {x}, {y + "_positive"});
  add_node(graph, "NonZero", {y + "_positive"}, {y + "_places"});
  add_node(graph, "Transpose", {y + "_places"}, {y + "_rows"});
  add_node(graph, "GatherND", {x, y + "_rows"}, {y + "_values"});
  add_node(graph, "Unsqueeze", {y + "_values", "last"}, {y + "_column"});
  add_node(graph, "MatMul", {y + "_column", "double"}, {y});
}

onnx::ModelProto positive_rows() {
  onnx::ModelProto model = model_of_numbers(6);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_integers(graph, "last", {1});
  add_floats(graph, "double", {1, 2}, {1, 2});
  add_positive_rows(graph, "x", "y");
  return model;
}

TEST(Tail, OneModelServesAnyCount) {
  EXPECT_EQ(models_for(positive_rows(),
                       {{1, -1, 2, 0, 3, 0}, {1, 1, 1, 1, 1, 1}, {0, 0, 4, 0, 0, 0}, {1, 2, 3, 0, 0, -1}}),
            1U);
}

TEST(Tail, WithoutElementsIsAnotherModel) {
  EXPECT_EQ(models_for(positive_rows(), {{0, 0, 0, 0, 0, -5}, {1, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0}}), 2U);
}

/// Two counts that are equal in the first run, and not in the next.
TEST(Tail, WhatWasEqualByChanceIsMadeAnew) {
  onnx::ModelProto model = positive_rows();
  onnx::GraphProto& graph = *model.mutable_graph();
  add_output(graph, "z");
  add_node(graph, "Neg", {"x"}, {"opposite"});
  add_positive_rows(graph, "opposite", "w");
  add_node(graph, "Transpose", {"w"}, {"turned"});
  add_node(graph, "MatMul", {"y", "turned"}, {"z"});
  EXPECT_LE(models_for(model, {{1, -1, 2, -2, 0, 0}, {1, 2, 3, -1, 0, 0}, {-1, -2, -3, -4, 5, 0}}), 2U);
}

TEST(Tail, OfATail) {
  onnx::ModelProto model = positive_rows();
  onnx::GraphProto& graph = *model.mutable_graph();
  add_output(graph, "z");
  add_floats(graph, "two", {1}, {2});
  add_integers(graph, "flat", {-1});
  add_node(graph, "Sub", {"y", "two"}, {"less"});
  add_node(graph, "Reshape", {"less", "flat"}, {"line"});
  add_positive_rows(graph, "line", "z");
  EXPECT_EQ(models_for(model, {{1, -1, 2, 0, 3, 0}, {1, 1, 1, 4, 1, 1}, {0, 0, 4, 0, 0, 0}}), 2U);
}

/// A size that is computed: as many rows as the largest element says.
onnx::ModelProto counted_rows() {
  onnx::ModelProto model = model_of_numbers(3);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_integers(graph, "flat", {1});
  add_integers(graph, "three", {3});
  add_node(graph, "ReduceMax", {"x"}, {"most"});
  add_node(graph, "Cast", {"most"}, {"number"});
  set_integer(*graph.mutable_node(graph.node_size() - 1), "to", onnx::TensorProto::INT64);
  add_node(graph, "Reshape", {"number", "flat"}, {"rows"});
  add_node(graph, "Concat", {"rows", "three"}, {"shape"});
  set_integer(*graph.mutable_node(graph.node_size() - 1), "axis", 0);
  add_node(graph, "Expand", {"x", "shape"}, {"wide"});
  add_node(graph, "Softmax", {"wide"}, {"shares"});
  add_node(graph, "Shape", {"shares"}, {"again"});
  add_node(graph, "Expand", {"shares", "again"}, {"y"});
  return model;
}

TEST(Tail, ElementsThatAreSizesAreOpen) {
  EXPECT_LE(models_for(counted_rows(), {{1, 2, 4}, {1, 7, 0}, {0, 3, 1}, {9, 0, 0}, {1, 0, 0}}), 2U);
}

/// x as integers.
void add_whole(onnx::GraphProto& graph) {
  add_node(graph, "Cast", {"x"}, {"whole"});
  set_integer(*graph.mutable_node(graph.node_size() - 1), "to", onnx::TensorProto::INT64);
}

TEST(Tail, ElementsOfZeroAreOpenAsOthersAre) {
  onnx::ModelProto model = model_of_numbers(4);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_floats(graph, "image", {2, 3}, {1, 2, 3, 4, 5, 6});
  add_whole(graph);
  add_node(graph, "Pad", {"image", "whole"}, {"padded"});
  add_node(graph, "Softmax", {"padded"}, {"y"});
  EXPECT_LE(models_for(model, {{0, 1, 2, 0}, {1, 0, 0, 2}, {0, 0, 0, 0}, {3, 1, 4, 1}, {2, 0, 0, 5}}), 3U);
}

TEST(Tail, ElementsBelowZeroAreOpenToo) {
  onnx::ModelProto model = model_of_numbers(4);
  onnx::GraphProto& graph = *model.mutable_graph();
  std::vector<float> image(81);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i * 37 % 81);
  add_floats(graph, "image", {9, 9}, image);
  add_integers(graph, "halves", {2, 2});
  add_whole(graph);
  add_node(graph, "Split", {"whole", "halves"}, {"starts", "ends"});
  add_node(graph, "Slice", {"image", "starts", "ends"}, {"part"});
  add_node(graph, "Softmax", {"part"}, {"y"});
  EXPECT_LE(models_for(model, {{0, 1, -1, 8}, {1, 0, -2, 7}, {2, 5, -4, 6}, {1, 1, -1, 9}}), 3U);
  EXPECT_LE(models_for(model, {{0, 1, -1, 8}, {0, 0, 5, -2}, {2, 5, -4, 6}, {3, 3, 9, 9}}), 8U);
}

/// Scales are no sizes: a run that has the same as one before it has a tail of its own for them.
TEST(Tail, NumbersThatComeAgainHaveTailsOfTheirOwn) {
  onnx::ModelProto model = model_of_numbers(2);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_floats(graph, "image", {2, 3}, {1, 2, 3, 4, 5, 6});
  set_text(add_node(graph, "Resize", {"image", "", "x"}, {"y"}), "mode", "linear");
  EXPECT_EQ(models_for(model, {{1, 2}, {2, 1.5}, {1, 3}}), 0U);
  EXPECT_EQ(models_for(model, {{1, 2}, {1, 2}, {2, 1.5}, {1, 3}, {2, 1.5}, {1, 2}}), 2U);
}

/// A branch of another shape than the other's is taken by runs that have its condition.
TEST(Tail, ConditionsAreNumbers) {
  onnx::ModelProto model = model_of_numbers(3);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_floats(graph, "zero", {1}, {0});
  add_integers(graph, "square", {1, 3});
  add_node(graph, "ReduceMax", {"x"}, {"most"});
  set_integer(*graph.mutable_node(graph.node_size() - 1), "keepdims", 0);
  add_node(graph, "Greater", {"most", "zero"}, {"is_above"});
  onnx::NodeProto& chosen = add_node(graph, "If", {"is_above"}, {"y"});
  onnx::GraphProto& taken = set_graph(chosen, "then_branch");
  add_node(taken, "Softmax", {"x"}, {"shares"});
  add_output(taken, "shares");
  onnx::GraphProto& other = set_graph(chosen, "else_branch");
  add_node(other, "Reshape", {"x", "square"}, {"row"});
  add_output(other, "row");
  EXPECT_EQ(models_for(model, {{1, 2, 3}, {1, 2, 4}, {-1, -2, -3}, {-2, -2, -2}, {1, 1, 1}}), 2U);
}

TEST(Tail, ASizeOfZeroIsASizeToo) {
  EXPECT_LE(models_for(counted_rows(), {{0, 0, 0}, {1, 7, 0}, {0, 0, 0}, {2, 0, 0}}), 3U);
}

/// Sizes of the model that the tail reads: known where it is imported, others at other sizes.
TEST(Tail, SizesOfTheModelAreItsSizes) {
  onnx::ModelProto model = empty_model(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {4, 2});
  name_axis(*graph.mutable_input(0), 0, "batch");
  add_output(graph, "y");
  add_integers(graph, "flat", {-1});
  add_integers(graph, "last", {1});
  add_floats(graph, "double", {1, 2}, {1, 2});
  add_node(graph, "Reshape", {"x", "flat"}, {"line"});
  add_positive_rows(graph, "line", "rows");
  add_node(graph, "ReduceSum", {"rows"}, {"sum"});
  set_integer(*graph.mutable_node(graph.node_size() - 1), "keepdims", 0);
  add_node(graph, "Shape", {"x"}, {"dims"});
  add_node(graph, "Expand", {"sum", "dims"}, {"y"});
  EXPECT_LE(models_for(model, {{1, -1, 2, 0, 3, 0}, {1, 1}, {1, 2, 3, 4}, {0, 1, 0, 2, 0, 3, 4, 5}}), 2U);
}

/// The same where the model's own size is open, too, and more nodes wait for the number.
TEST(Tail, ElementsThatAreSizesAreOpenBesideThoseOfTheModel) {
  onnx::ModelProto model = empty_model(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {4, 2});
  name_axis(*graph.mutable_input(0), 0, "batch");
  add_output(graph, "y");
  add_integers(graph, "flat", {1});
  add_integers(graph, "ones", {1, 1});
  add_node(graph, "ReduceMax", {"x"}, {"most"});
  add_node(graph, "Cast", {"most"}, {"number"});
  set_integer(*graph.mutable_node(graph.node_size() - 1), "to", onnx::TensorProto::INT64);
  add_node(graph, "Reshape", {"number", "flat"}, {"repeats"});
  add_node(graph, "Concat", {"repeats", "ones"}, {"shape"});
  set_integer(*graph.mutable_node(graph.node_size() - 1), "axis", 0);
  add_node(graph, "Expand", {"x", "shape"}, {"wide"});
  add_node(graph, "Tile", {"wide", "shape"}, {"y"});
  EXPECT_LE(models_for(model, {{1, 2, 4, 0}, {1, 7}, {0, 3, 1, 2, 0, 0}, {2, 1}, {1, 2, 5, 5}}), 3U);
}

/// As a length regulator has them: every element as often as it says, joined.
TEST(Tail, PiecesOfManySizesAreJoinedFirst) {
  onnx::ModelProto model = model_of_numbers(6);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_integers(graph, "ones", {1, 1, 1, 1, 1, 1});
  add_floats(graph, "two", {1}, {2});
  add_node(graph, "Cast", {"x"}, {"counts"});
  set_integer(*graph.mutable_node(0), "to", onnx::TensorProto::INT64);
  const std::vector<std::string> each = {"0", "1", "2", "3", "4", "5"};
  std::vector<std::string> values;
  std::vector<std::string> counts;
  std::vector<std::string> pieces;
  for (const std::string& i : each) {
    values.push_back("value" + i);
    counts.push_back("count" + i);
    pieces.push_back("piece" + i);
  }
  add_node(graph, "Split", {"x", "ones"}, values);
  add_node(graph, "Split", {"counts", "ones"}, counts);
  for (std::size_t i = 0; i < each.size(); ++i)
    add_node(graph, "Expand", {values[i], counts[i]}, {pieces[i]});
  add_node(graph, "Concat", pieces, {"all"});
  set_integer(*graph.mutable_node(graph.node_size() - 1), "axis", 0);
  add_node(graph, "Mul", {"all", "two"}, {"y"});
  EXPECT_LE(
      models_for(model, {{1, 2, 3, 0, 5, 1}, {2, 2, 2, 2, 2, 1}, {0, 0, 0, 0, 0, 7}, {6, 5, 4, 3, 2, 1}}),
      2U);
}

void add_flags(onnx::GraphProto& graph, const std::string& texts, const std::string& y) {
  onnx::NodeProto& flags = add_node(graph, "OneHotEncoder", {texts}, {y});
  flags.set_domain("ai.onnx.ml");
  onnx::AttributeProto& names = *flags.add_attribute();
  names.set_name("cats_strings");
  names.set_type(onnx::AttributeProto::STRINGS);
  for (const char* name : {"a", "b"}) names.add_strings(name);
}

/// What strings are made to is given to the tail, which has the rest.
TEST(Tail, FollowsStepsOfStrings) {
  onnx::ModelProto model = empty_model(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {3}, onnx::TensorProto::STRING);
  add_output(graph, "y");
  add_node(graph, "StringNormalizer", {"x"}, {"texts"});
  add_flags(graph, "texts", "flags");
  add_floats(graph, "w", {2, 1}, {3, 5});
  add_node(graph, "MatMul", {"flags", "w"}, {"y"});
  const ParsedModel parsed = parse_model_proto(model, {""}, {}, 0);
  const ImportedModel imported = import_at(parsed, {});
  InterpretedTails tails;
  for (const char* first : {"a", "c"}) {
    const HostValue x(StringTensor{{3}, {first, "b", "a"}});
    const Tensor y = tails.run(imported, {x}).at(0).tensor();
    EXPECT_EQ(y.dims(), (Dims{3, 1}));
    EXPECT_EQ(y.as_double(0), first == std::string("a") ? 3 : 0);
    EXPECT_EQ(y.as_double(1), 5);
  }
  EXPECT_EQ(tails.models(), 1U);
}

/// Columns of texts and of numbers, whose files name no sizes: that all have as many rows is taken to be no chance.
TEST(Tail, OfTextsAndNumbersIsOneForAnyRows) {
  onnx::ModelProto model = empty_model(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {3}, onnx::TensorProto::STRING);
  for (int i = 1; i < 3; ++i) add_input(graph, "n" + std::to_string(i), {3, 1});
  for (int i = 0; i < 3; ++i)
    graph.mutable_input(i)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->Clear();
  add_output(graph, "y");
  add_node(graph, "StringNormalizer", {"x"}, {"texts"});
  add_flags(graph, "texts", "flags");
  add_node(graph, "Concat", {"n1", "flags", "n2"}, {"all"});
  set_integer(*graph.mutable_node(graph.node_size() - 1), "axis", 1);
  add_floats(graph, "w", {4, 1}, {1, 3, 5, 10});
  add_node(graph, "MatMul", {"all", "w"}, {"y"});
  const ParsedModel parsed = parse_model_proto(model, {""}, {}, 0);
  InterpretedTails tails;
  for (const std::int64_t rows : {4, 7, 5}) {
    const ImportedModel imported = import_at(parsed, {rows, rows});
    const Tensor one =
        Tensor::of(DType::f32, {rows, 1}, std::vector<float>(static_cast<std::size_t>(rows), 1));
    StringTensor texts{{rows}, std::vector<std::string>(static_cast<std::size_t>(rows), "b")};
    texts.values[0] = "a";
    const Tensor y = tails.run(imported, {HostValue(texts), one, one}).at(0).tensor();
    ASSERT_EQ(y.dims(), (Dims{rows, 1}));
    EXPECT_EQ(y.as_double(0), 14);
    EXPECT_EQ(y.as_double(rows - 1), 16);
  }
  EXPECT_EQ(tails.models(), 1U);
}

}  // namespace
}  // namespace sylvite::tail_test

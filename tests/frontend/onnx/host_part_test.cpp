#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx-ml.pb.h>

#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "frontend/graph/interpreter.h"
#include "frontend/graph/verifier.h"
#include "frontend/onnx/imported_model.h"
#include "tests/frontend/onnx/onnx_model.h"

namespace sylvite::host_part_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ImportedModel imported(const onnx::ModelProto& model) {
  ImportedModel result = import_model_bytes(model.SerializeAsString(), "");
  verify(result.graph);
  return result;
}

/// y = sum of the elements of relu(x) that are not zero, through their coordinates.
onnx::ModelProto sum_of_nonzeros() {
  onnx::ModelProto model = empty_model(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {6});
  add_output(graph, "y");
  add_output(graph, "positive");
  add_node(graph, "Relu", {"x"}, {"positive"});
  add_node(graph, "NonZero", {"positive"}, {"places"});
  add_node(graph, "Transpose", {"places"}, {"rows"});
  add_node(graph, "GatherND", {"positive", "rows"}, {"values"});
  add_node(graph, "ReduceSum", {"values"}, {"y"});
  return model;
}

TEST(HostPart, TakesWhatDependsOnDataAndWhatReadsIt) {
  const ImportedModel model = imported(sum_of_nonzeros());
  ASSERT_NE(model.host, nullptr);
  ASSERT_EQ(model.graph.nodes().size(), 1U);
  EXPECT_EQ(model.graph.nodes()[0].op, Op::relu);
  ASSERT_EQ(model.host->steps().size(), 4U);
  EXPECT_THAT(model.host->steps()[0].name, HasSubstr("NonZero"));
  EXPECT_THAT(model.host->steps()[0].reason, HasSubstr("depends on the values of 'positive'"));
  EXPECT_THAT(model.host->steps()[1].reason, HasSubstr("reads 'places'"));
}

TEST(HostPart, EachRunHasShapesOfItsOwn) {
  const ImportedModel model = imported(sum_of_nonzeros());
  for (const std::vector<float>& x :
       {std::vector<float>{1, -1, 2, 0, 3, 0}, std::vector<float>{0, 0, 0, 0, 0, -5},
        std::vector<float>{1, 1, 1, 1, 1, 1}}) {
    const std::vector<HostValue> outputs = interpret(model, {Tensor::of(DType::f32, {6}, x)});
    float sum = 0;
    for (const float value : x) sum += std::max(value, 0.0F);
    EXPECT_EQ(outputs.at(0).tensor().as_double(0), sum);
    EXPECT_EQ(outputs.at(1).tensor().dims(), Dims{6});
  }
}

TEST(HostPart, StepsThatNoOutputNeedsAreLeftOut) {
  onnx::ModelProto model = sum_of_nonzeros();
  model.mutable_graph()->mutable_output()->erase(model.mutable_graph()->output().begin());
  EXPECT_EQ(imported(model).host, nullptr);
}

TEST(HostPart, TheGraphAloneIsRefusedByName) {
  EXPECT_THROW((void)import_onnx_bytes(sum_of_nonzeros().SerializeAsString(), ""), UnsupportedError);
}

TEST(HostPart, NamesTheInputThatDoesNotFit) {
  const ImportedModel model = imported(sum_of_nonzeros());
  EXPECT_THROW((void)interpret(model, {}), InputError);
  try {
    (void)interpret(model, {Tensor(DType::f32, {5})});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("input 0 'x': got f32[5], expected f32[6]"));
  }
}

/// A loop whose trips the run decides.
TEST(HostPart, LoopsRunAsOftenAsTheRunSays) {
  onnx::ModelProto model = empty_model(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "trips", {}, onnx::TensorProto::INT64);
  add_input(graph, "x", {2});
  add_output(graph, "y");
  add_output(graph, "all");
  onnx::NodeProto& loop = add_node(graph, "Loop", {"trips", "", "x"}, {"y", "all"});
  onnx::GraphProto& body = set_graph(loop, "body");
  add_input(body, "i", {}, onnx::TensorProto::INT64);
  add_input(body, "goes_on", {}, onnx::TensorProto::BOOL);
  add_input(body, "before", {2});
  add_output(body, "still");
  add_output(body, "after");
  add_output(body, "seen");
  add_node(body, "Identity", {"goes_on"}, {"still"});
  add_node(body, "Add", {"before", "x"}, {"after"});  // x is of the graph outside
  add_node(body, "Identity", {"after"}, {"seen"});
  const ImportedModel loops = imported(model);
  const Tensor x = Tensor::of<float>(DType::f32, {2}, {1, -2});
  for (const std::int64_t trips : {0, 1, 5}) {
    const auto results = interpret(loops, {Tensor::scalar_i64(trips), x});
    EXPECT_EQ(results.at(0).tensor().as_double(1), -2.0 * static_cast<double>(trips + 1));
    EXPECT_EQ(results.at(1).tensor().dims(), (Dims{trips, 2}));
  }
}

TEST(HostPart, RandomNumbersAreDrawnAtEveryRunAndASeedRepeatsThem) {
  onnx::ModelProto model = empty_model(15);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {100});
  add_output(graph, "y");
  onnx::NodeProto& node = add_node(graph, "RandomUniformLike", {"x"}, {"y"});
  const auto draw = [&] {
    return interpret(imported(model), {Tensor(DType::f32, {100})}).at(0).tensor().as_double(7);
  };
  EXPECT_NE(draw(), draw());
  set_real(node, "seed", 3);
  EXPECT_EQ(draw(), draw());
}

/// The means of powers 1 to 4 of what the operator draws, and of the products of neighbours.
std::vector<double> moments(const char* op, onnx::TensorProto::DataType dtype) {
  onnx::ModelProto model = empty_model(15);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_output(graph, "y");
  onnx::NodeProto& node = add_node(graph, op, {}, {"y"});
  set_integers(node, "shape", {100000});
  set_integer(node, "dtype", dtype);
  set_real(node, "seed", 5);
  const Tensor drawn = interpret(imported(model), {}).at(0).tensor();
  std::vector<double> means(5);
  for (std::int64_t i = 0; i + 1 < drawn.size(); ++i) {
    const double x = drawn.as_double(i), next = drawn.as_double(i + 1);
    const double terms[] = {x, x * x, x * x * x, x * x * x * x, x * next};
    for (std::size_t k = 0; k < means.size(); ++k)
      means[k] += terms[k] / static_cast<double>(drawn.size() - 1);
  }
  return means;
}

TEST(HostPart, RandomNumbersHaveTheMomentsOfTheirDistributions) {
  using ::testing::DoubleNear;
  for (const auto dtype : {onnx::TensorProto::FLOAT, onnx::TensorProto::DOUBLE}) {
    EXPECT_THAT(moments("RandomNormal", dtype),
                ElementsAre(DoubleNear(0, 0.02), DoubleNear(1, 0.03), DoubleNear(0, 0.08), DoubleNear(3, 0.2),
                            DoubleNear(0, 0.02)));
    EXPECT_THAT(moments("RandomUniform", dtype),
                ElementsAre(DoubleNear(0.5, 0.01), DoubleNear(1.0 / 3, 0.01), DoubleNear(0.25, 0.01),
                            DoubleNear(0.2, 0.01), DoubleNear(0.25, 0.01)));
  }
}

TEST(HostPart, ClassesAreDrawnByTheirLogarithms) {
  onnx::ModelProto model = empty_model(15);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {2, 3});
  add_output(graph, "y");
  onnx::NodeProto& node = add_node(graph, "Multinomial", {"x"}, {"y"});
  set_integer(node, "sample_size", 20000);
  set_real(node, "seed", 1);
  const float far = -std::numeric_limits<float>::infinity();
  const Tensor x =
      Tensor::of<float>(DType::f32, {2, 3}, {900, far, 900 + std::log(3.0F), std::log(0.5F), 0, far});
  const Tensor y = interpret(imported(model), {x}).at(0).tensor();
  std::array<std::array<double, 3>, 2> shares = {};
  for (std::int64_t i = 0; i < y.size(); ++i)
    shares.at(static_cast<std::size_t>(i / 20000)).at(static_cast<std::size_t>(y.as_int64(i))) += 1.0 / 20000;
  using ::testing::DoubleNear;
  EXPECT_THAT(shares[0], ElementsAre(DoubleNear(0.25, 0.02), 0.0, DoubleNear(0.75, 0.02)));
  EXPECT_THAT(shares[1], ElementsAre(DoubleNear(1.0 / 3, 0.02), DoubleNear(2.0 / 3, 0.02), 0.0));
}

/// The label with the larger of two scores, twice as often once it is moved.
TEST(HostPart, TextsThatARunChoosesAreNumbersUntilTheEnd) {
  onnx::ModelProto model = empty_model(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {3, 2});
  for (const char* output : {"label", "again"}) add_output(graph, output);
  add_node(graph, "ArgMax", {"x"}, {"best"});
  set_integer(*graph.mutable_node(0), "axis", 1);
  set_integer(*graph.mutable_node(0), "keepdims", 0);
  onnx::TensorProto& names = *graph.add_initializer();
  names.set_name("names");
  names.set_data_type(onnx::TensorProto::STRING);
  names.add_dims(2);
  for (const char* name : {"no", "yes"}) names.add_string_data(name);
  add_node(graph, "Gather", {"names", "best"}, {"label"});
  add_node(graph, "Concat", {"label", "label"}, {"again"});
  set_integer(*graph.mutable_node(2), "axis", 0);
  const ImportedModel imported_model = imported(model);
  ASSERT_NE(imported_model.host, nullptr);
  EXPECT_EQ(imported_model.host->steps().size(), 2U);  // one look-up for each output
  EXPECT_THAT(imported_model.host->steps()[0].reason, HasSubstr("looks up texts"));
  const Tensor x = Tensor::of(DType::f32, {3, 2}, std::vector<float>{1, 2, 3, 0, -1, 0});
  const std::vector<HostValue> outputs = interpret(imported_model, {x});
  EXPECT_THAT(outputs.at(0).strings().values, ElementsAre("yes", "no", "yes"));
  EXPECT_THAT(outputs.at(1).strings().values, ElementsAre("yes", "no", "yes", "yes", "no", "yes"));
}

/// Regions of which one lies outside, and one has no area; of two images of three channels.
onnx::ModelProto regions_model(const std::string& mode, const std::string& coordinates, bool are_known) {
  const std::vector<float> corners = {0, 0, 9, 7, -3, 2, 4.5F, 30, 6, 6, 6, 6, 20, 20, 30, 31, 1, 0.5F, 2, 8};
  onnx::ModelProto model = empty_model(16);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {2, 3, 8, 10});
  if (are_known)
    add_floats(graph, "regions", {5, 4}, corners);
  else
    add_input(graph, "regions", {5, 4});
  add_integers(graph, "batch", {0, 1, 1, 0, 0});
  onnx::NodeProto& node = add_node(graph, "RoiAlign", {"x", "regions", "batch"}, {"y"});
  set_text(node, "mode", mode);
  set_text(node, "coordinate_transformation_mode", coordinates);
  set_integer(node, "output_height", 2);
  set_integer(node, "output_width", 3);
  add_output(graph, "y");
  return model;
}

TEST(HostPart, RegionsOfARunAreAlignedAsKnownOnesAre) {
  const std::vector<float> corners = {0, 0, 9, 7, -3, 2, 4.5F, 30, 6, 6, 6, 6, 20, 20, 30, 31, 1, 0.5F, 2, 8};
  Tensor x(DType::f32, {2, 3, 8, 10});
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<double>(i * i % 61) / 61 - 0.5);
  for (const char* mode : {"avg", "max"}) {
    for (const char* coordinates : {"half_pixel", "output_half_pixel"}) {
      const ImportedModel known = imported(regions_model(mode, coordinates, true));
      const ImportedModel given = imported(regions_model(mode, coordinates, false));
      ASSERT_NE(given.host, nullptr);
      const Tensor wanted = interpret(known.graph, {x}).at(0);
      const std::vector<HostValue> made = interpret(given, {x, Tensor::of(DType::f32, {5, 4}, corners)});
      const Tensor actual = made.at(0).tensor();
      ASSERT_EQ(actual.dims(), wanted.dims());
      for (std::int64_t i = 0; i < wanted.size(); ++i)
        EXPECT_NEAR(actual.as_double(i), wanted.as_double(i), 1e-6) << mode << " " << coordinates << " " << i;
    }
  }
}

TEST(HostPart, PlacesOfElementsThatAreNotZeroAreInOrder) {
  onnx::ModelProto model = empty_model(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {2, 2, 3});
  add_output(graph, "y");
  add_node(graph, "NonZero", {"x"}, {"y"});
  const Tensor x =
      Tensor::of(DType::f32, {2, 2, 3}, std::vector<float>{0, 1, 0, 0, 0, -2, NAN, 0, 0, 0, 0, 3});
  const std::vector<HostValue> made = interpret(imported(model), {x});
  EXPECT_THAT(made.at(0).tensor().to_int64s(), ElementsAre(0, 0, 1, 1, 0, 1, 0, 1, 1, 2, 0, 2));
}

/// What Unique finds of x in order, or in order of appearance: its outputs one behind the other.
std::vector<std::vector<double>> unique_of(const Tensor& x, bool is_sorted, bool has_axis = false) {
  onnx::ModelProto model = empty_model(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", x.dims());
  const std::vector<std::string> names = {"values", "first", "inverse", "counts"};
  for (const std::string& name : names) add_output(graph, name);
  onnx::NodeProto& node = add_node(graph, "Unique", {"x"}, names);
  set_integer(node, "sorted", is_sorted ? 1 : 0);
  if (has_axis) set_integer(node, "axis", 0);
  std::vector<std::vector<double>> found;
  for (const HostValue& made : interpret(imported(model), {x})) {
    found.emplace_back();
    for (std::int64_t i = 0; i < made.tensor().size(); ++i)
      found.back().push_back(made.tensor().as_double(i));
  }
  return found;
}

TEST(HostPart, EqualElementsAreFoundInEitherOrder) {
  const Tensor x = Tensor::of(DType::f32, {8}, std::vector<float>{3, NAN, -0.0F, 3, 0, -INFINITY, NAN, -1});
  EXPECT_THAT(unique_of(x, false),
              ElementsAre(ElementsAre(3, testing::NanSensitiveDoubleEq(NAN), 0, -INFINITY, -1),
                          ElementsAre(0, 1, 2, 5, 7), ElementsAre(0, 1, 2, 0, 2, 3, 1, 4),
                          ElementsAre(2, 2, 2, 1, 1)));
  EXPECT_THAT(unique_of(x, true),
              ElementsAre(ElementsAre(-INFINITY, -1, 0, 3, testing::NanSensitiveDoubleEq(NAN)),
                          ElementsAre(5, 7, 2, 0, 1), ElementsAre(3, 4, 2, 3, 2, 0, 4, 1),
                          ElementsAre(1, 1, 2, 2, 2)));
}

TEST(HostPart, EqualSlicesAreFoundInEitherOrder) {
  const Tensor x = Tensor::of(DType::f32, {4, 2}, std::vector<float>{2, 1, 0, 5, 2, 1, 0, 4});
  EXPECT_THAT(unique_of(x, false, true), ElementsAre(ElementsAre(2, 1, 0, 5, 0, 4), ElementsAre(0, 1, 3),
                                                     ElementsAre(0, 1, 0, 2), ElementsAre(2, 1, 1)));
  EXPECT_THAT(unique_of(x, true, true), ElementsAre(ElementsAre(0, 4, 0, 5, 2, 1), ElementsAre(3, 1, 0),
                                                    ElementsAre(2, 1, 2, 0), ElementsAre(1, 1, 2)));
}

/// How often the words of an n-gram follow each other in a row, from zero to `most_skipped` words between any two.
float times_in(const std::vector<std::int64_t>& row, const std::vector<std::int64_t>& gram,
               std::size_t most_skipped) {
  float times = 0;
  for (std::size_t step = 1; step <= (gram.size() == 1 ? 1 : most_skipped + 1); ++step)
    for (std::size_t start = 0; start + (gram.size() - 1) * step < row.size(); ++start) {
      bool is_equal = true;
      for (std::size_t i = 0; i < gram.size(); ++i) is_equal = is_equal && row[start + i * step] == gram[i];
      if (is_equal) times += 1;
    }
  return times;
}

TEST(HostPart, WordsAreCountedByTheSamePoolInEveryRun) {
  const std::vector<std::vector<std::int64_t>> grams = {{1},     {-7},      {1, 2},   {2, 2},
                                                        {1, -7}, {1, 2, 1}, {2, 2, 2}};
  onnx::ModelProto model = empty_model(13);
  add_input(*model.mutable_graph(), "words", {2, 9}, onnx::TensorProto::INT64);
  add_output(*model.mutable_graph(), "y");
  onnx::NodeProto& node = add_node(*model.mutable_graph(), "TfIdfVectorizer", {"words"}, {"y"});
  std::vector<std::int64_t> pool;
  for (const std::vector<std::int64_t>& gram : grams) pool.insert(pool.end(), gram.begin(), gram.end());
  set_text(node, "mode", "TF");
  set_integer(node, "min_gram_length", 1);
  set_integer(node, "max_gram_length", 3);
  set_integer(node, "max_skip_count", 2);
  set_integers(node, "ngram_counts", {0, 2, 8});
  set_integers(node, "ngram_indexes", {6, 5, 4, 3, 2, 1, 0});
  set_integers(node, "pool_int64s", pool);
  const ImportedModel counted = imported(model);
  for (const std::vector<std::int64_t>& words :
       {std::vector<std::int64_t>{1, 2, 1, 2, 2, 2, -7, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2},
        std::vector<std::int64_t>{-7, 3, -7, 0, 1, -7, 1, 2, 1, 1, 1, 2, 2, 1, 1, 9, 9, -7}}) {
    const Tensor y = interpret(counted, {Tensor::of(DType::i64, {2, 9}, words)}).at(0).tensor();
    ASSERT_EQ(y.dims(), (Dims{2, 7}));
    for (std::size_t row = 0; row < 2; ++row)
      for (std::size_t id = 0; id < grams.size(); ++id) {
        const auto first = words.begin() + static_cast<std::ptrdiff_t>(9 * row);
        EXPECT_EQ(y.as_double(static_cast<std::int64_t>(7 * row + 6 - id)),
                  times_in(std::vector(first, first + 9), grams[id], 2))
            << row << " " << id;
      }
  }
}

TEST(HostPart, APatternIsMatchedInEveryRun) {
  onnx::ModelProto model = empty_model(20);
  add_input(*model.mutable_graph(), "texts", {2}, onnx::TensorProto::STRING);
  add_output(*model.mutable_graph(), "y");
  set_text(add_node(*model.mutable_graph(), "RegexFullMatch", {"texts"}, {"y"}), "pattern", "a+b");
  const ImportedModel counted = imported(model);
  const auto matches = [&](const std::vector<std::string>& texts) {
    return interpret(counted, {HostValue(StringTensor{{2}, texts})}).at(0).tensor().to_int64s();
  };
  EXPECT_THAT(matches({"aab", "b"}), ElementsAre(1, 0));
  EXPECT_THAT(matches({"abb", "ab"}), ElementsAre(0, 1));
  EXPECT_THROW((void)matches({std::string(4'000'000, 'a'), ""}),
               UnsupportedError);  // too much for the pattern
}

}  // namespace
}  // namespace sylvite::host_part_test

#include "frontend/onnx/model_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "frontend/onnx/imported_model.h"
#include "frontend/onnx/size_conventions.h"
#include "tests/frontend/onnx/onnx_model.h"

namespace sylvite::model_sizes_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// An input whose dims are names, numbers, or "" for one without either.
void add_open_input(onnx::GraphProto& graph, const std::string& name, const std::vector<std::string>& dims) {
  add_input(graph, name, {});
  auto& shape =
      *graph.mutable_input(graph.input_size() - 1)->mutable_type()->mutable_tensor_type()->mutable_shape();
  for (const std::string& dim : dims) {
    auto& added = *shape.add_dim();
    if (dim.find_first_not_of("-0123456789") != std::string::npos)
      added.set_dim_param(dim);
    else if (!dim.empty())
      added.set_dim_value(std::stoll(dim));
  }
}

/// ids[batch,sequence], mask[batch,sequence], image[-1,3,height,].
onnx::GraphProto open_graph() {
  onnx::GraphProto graph;
  add_open_input(graph, "ids", {"batch", "sequence"});
  add_open_input(graph, "mask", {"batch", "sequence"});
  add_open_input(graph, "image", {"-1", "3", "height", ""});
  return graph;
}

std::string refusal(const onnx::GraphProto& graph, const ImportOptions& options) {
  try {
    return "accepted: " + describe_ranges(read_model_sizes(graph, options));
  } catch (const UsageError& error) {
    return error.what();
  }
}

std::string refusal(const ModelSizes& model, const std::vector<Dims>& inputs) {
  Sizes sizes;
  try {
    SizeReader(model).read(
        inputs.size(), [&](std::size_t i) { return GivenType{DType::f32, inputs[i]}; }, sizes);
    return "accepted: " + describe(model, sizes);
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(ModelSizes, OpenDimensionsHaveNamesRangesAndUsualSizes) {
  const ModelSizes sizes = read_model_sizes(open_graph(), {});
  EXPECT_EQ(describe_ranges(sizes),
            "batch is 1.. (fast at 1), sequence is 1.. (fast at 128), image_d0 is 1.. (fast at 1), "
            "height is 1.. (fast at 224), image_d3 is 1.. (fast at 224)");
  EXPECT_THAT(first_sizes(sizes), ElementsAre(1, 128, 1, 224, 224));
  EXPECT_EQ(dims_at(sizes.inputs[2], {2, 7, 4, 32, 64}), (Dims{4, 3, 32, 64}));
}

TEST(ModelSizes, NamesTellUsualSizes) {
  const std::tuple<const char*, int, int, std::int64_t> rows[] = {
      {"batch_size", 1, 2, 1},
      {"N", 0, 4, 1},
      {"n", 2, 3, 128},
      {"decoder_sequence_length", 0, 2, 128},
      {"numTokens", 0, 1, 128},
      {"seq_len", 1, 2, 128},
      {"image_height", 0, 1, 224},
      {"W", 3, 4, 224},
      {"s77", 0, 2, 1},
      {"unk__12", 1, 3, 128},
      {"anything", 2, 4, 224},
  };
  for (const auto& [name, axis, rank, usual] : rows)
    EXPECT_EQ(size_convention(name, axis, rank).usual, usual) << name;
}

TEST(ModelSizes, NamesTellMultiples) {
  for (const char* name : {"height", "32", "*h", "2*", "0*h", "2*h+1", "2*(h+1)", "-2*h", "99999*h", "h*32"})
    EXPECT_EQ(size_convention(name, 2, 4).multiple, 1) << name;
  EXPECT_EQ(size_convention("32*height", 2, 4).multiple, 32);
  EXPECT_EQ(size_convention("8*s_77", 2, 4).usual, 224);
  onnx::GraphProto graph;
  add_input(graph, "x", {1, 3, 64, 64});
  auto& shape = *graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  shape.mutable_dim(2)->set_dim_param("32*h");
  shape.mutable_dim(3)->set_dim_param("32*w");
  EXPECT_EQ(describe_ranges(read_model_sizes(graph, {})),
            "32*h is 32..%32 (fast at 224), 32*w is 32..%32 (fast at 224)");
  ImportOptions options;
  options.dims = {{"32*h", {40, 300}}, {"32*w", {1, 300, {100}}}};
  EXPECT_EQ(describe_ranges(read_model_sizes(graph, options)),
            "32*h is 64..288%32 (fast at 224), 32*w is 1..300 (fast at 100)");
  options.dims = {{"32*h", {64, 320, {}, 64}}, {"32*w", 100}};
  EXPECT_EQ(describe_ranges(read_model_sizes(graph, options)), "32*h is 64..320%64 (fast at 192)");
}

TEST(ModelSizes, DimsThatOthersTellFollowThem) {
  onnx::GraphProto graph;
  add_open_input(graph, "x", {"tokens", "16"});
  add_open_input(graph, "distances", {"2*tokens - 1", "tokens + more", "3*others"});
  ImportOptions options;
  options.dims = {{"tokens", {1, 100}}};
  const ModelSizes sizes = read_model_sizes(graph, options);
  EXPECT_EQ(describe_ranges(sizes),
            "tokens is 1..100 (fast at 100), tokens + more is 1.. (fast at 128), 3*others is 3..%3 (fast at 126)")
      << "one name alone is told";
  EXPECT_EQ(dims_at(sizes.inputs[1], {7, 5, 3}), (Dims{13, 5, 3}));
  EXPECT_EQ(refusal(sizes, {{7, 16}, {14, 5, 3}}),
            "input 1 'distances': got f32[14,5,3], expected f32[2*tokens-1,tokens + more,3*others]");
  EXPECT_EQ(refusal(sizes, {{7, 16}, {15, 5, 3}}),
            "input 1 'distances': dimension 0 (2*tokens-1) is 15, but it is 13 in 'x'");
  options.dims["2*tokens - 1"] = {1, 199};
  EXPECT_EQ(read_model_sizes(graph, options).symbols.size(), 4U) << "a size of its own where one is given";
}

TEST(ModelSizes, GivenRangesAndNumbers) {
  ImportOptions options;
  options.dims = {{"batch", 4},
                  {"sequence", {1, 512, {128, 384}}},
                  {"height", {1, 100}},
                  {"image_d3", {64, 512, {}, 64}}};
  const ModelSizes sizes = read_model_sizes(open_graph(), options);
  EXPECT_EQ(
      describe_ranges(sizes),
      "sequence is 1..512 (fast at 128, 384), image_d0 is 1.. (fast at 1), height is 1..100 (fast at 100), "
      "image_d3 is 64..512%64 (fast at 192)");
  EXPECT_EQ(describe_guesses(sizes), "image_d0 is 1.. (fast at 1)");
  EXPECT_THAT(hinted_sizes(sizes, 64),
              ElementsAre(ElementsAre(128, 1, 100, 192), ElementsAre(384, 1, 100, 192)));
  EXPECT_THROW((void)hinted_sizes(sizes, 1), UsageError);
  EXPECT_EQ(dims_at(sizes.inputs[0], {9, 1, 1, 64}), (Dims{4, 9}));
}

TEST(ModelSizes, WholeShapesAndBoundInputsGiveSizesEverywhere) {
  ImportOptions options;
  options.input_shapes["ids"] = {2, 5};
  EXPECT_EQ(dims_at(read_model_sizes(open_graph(), options).inputs[1], {1, 1, 1}), (Dims{2, 5}));
  options.input_shapes["mask"] = {2, 6};
  EXPECT_EQ(refusal(open_graph(), options),
            "dimension 'sequence' is 5 in the shape given for 'ids', but 6 in that for 'mask'");
  options.input_shapes.erase("mask");
  options.dims["sequence"] = {1, 4};
  EXPECT_EQ(refusal(open_graph(), options),
            "dimension 'sequence' is 5 in the shape given for 'ids', but 1..4 is given for its name");
  options.dims.clear();
  options.input_shapes.clear();
  options.bound_inputs["mask"] = Tensor(DType::f32, {3, 7});
  const ModelSizes bound = read_model_sizes(open_graph(), options);
  ASSERT_EQ(bound.inputs.size(), 2U);
  EXPECT_EQ(dims_at(bound.inputs[0], {1, 1, 1}), (Dims{3, 7}));
}

TEST(ModelSizes, RefusesWhatDoesNotFitTheModel) {
  ImportOptions options;
  options.dims["sequenc"] = 7;
  EXPECT_EQ(refusal(open_graph(), options),
            "the model has no dimension 'sequenc'; did you mean sequence? (its dimensions: batch, sequence, "
            "image_d0, height, image_d3)");
  onnx::GraphProto fixed;
  add_input(fixed, "x", {2, 3});
  EXPECT_EQ(refusal(fixed, options),
            "the model has no dimension 'sequenc': the sizes of its inputs are all fixed");
  options.dims = {{"batch", {1, 1 << 20}}, {"sequence", {1, 1 << 20}}};
  EXPECT_THAT(refusal(open_graph(), options),
              HasSubstr("input 'ids' has 1.1e+12 elements at the largest sizes given"));
  options.dims = {{"batch", {1, SizeRange::open}}, {"sequence", {1, SizeRange::open}}};  // no sizes are given
  EXPECT_THAT(refusal(open_graph(), options), HasSubstr("accepted"));
  options.dims = {{"batch", {5, 2}}};
  EXPECT_THAT(refusal(open_graph(), options), HasSubstr("dimension 'batch': the range ends at 2"));
}

TEST(ModelSizes, InitializersAreNoInputs) {
  onnx::GraphProto graph = open_graph();
  add_floats(graph, "mask", {1, 1}, {1});
  EXPECT_EQ(read_model_sizes(graph, {}).inputs.size(), 2U);
}

TEST(SizeReader, ReadsSizesOffShapes) {
  ImportOptions options;
  options.dims = {
      {"batch", {1, 8}}, {"sequence", {32, 512, {}, 32}}, {"image_d0", 1}, {"height", 4}, {"image_d3", 4}};
  const ModelSizes model = read_model_sizes(open_graph(), options);
  const Dims image = {1, 3, 4, 4};
  EXPECT_EQ(refusal(model, {{2, 64}, {2, 64}, image}), "accepted: batch=2, sequence=64");
  EXPECT_EQ(refusal(model, {{2, 64}, {2, 64}}), "2 inputs given, the model takes 3");
  EXPECT_EQ(refusal(model, {{9, 64}, {9, 64}, image}),
            "input 0 'ids': dimension 0 (batch) is 9; it may be 1 to 8 (see --dims)");
  EXPECT_EQ(refusal(model, {{2, 33}, {2, 33}, image}),
            "input 0 'ids': dimension 1 (sequence) is 33; it may be 32 to 512 in steps of 32 (see --dims)");
  EXPECT_EQ(refusal(model, {{0, 64}, {0, 64}, image}),
            "input 0 'ids': dimension 0 (batch) is 0; it may be 1 to 8 (see --dims)");
  EXPECT_EQ(refusal(model, {{2, 64}, {2, 96}, image}),
            "input 1 'mask': dimension 1 (sequence) is 96, but it is 64 in 'ids'");
  EXPECT_EQ(refusal(model, {{2, 64, 1}, {2, 64}, image}),
            "input 0 'ids': got f32[2,64,1], expected f32[batch,sequence]");
  EXPECT_EQ(refusal(model, {{2, 64}, {2, 64}, {1, 4, 4, 4}}),
            "input 2 'image': got f32[1,4,4,4], expected f32[1,3,4,4]");
}

TEST(SizeReader, GivenInputsAreTheSizesToBeFastAt) {
  ModelSizes model = read_model_sizes(open_graph(), {});
  hint_sizes(model, {{"mask", {3, 9}}});
  EXPECT_THAT(first_sizes(model), ElementsAre(3, 9, 1, 224, 224));
  EXPECT_EQ(describe_guesses(model),
            "image_d0 is 1.. (fast at 1), height is 1.. (fast at 224), image_d3 is 1.. (fast at 224)");
  EXPECT_THROW(hint_sizes(model, {{"mask", {3, 9}}, {"ids", {3, 8}}}), InputError);
}

TEST(ModelSizes, SizesBesideAreOfLikeSize) {
  const ModelSizes model = read_model_sizes(open_graph(), {});
  EXPECT_THAT(sizes_beside(model, {1, 128, 4, 224, 224}), ElementsAre(1, 160, 6, 128, 160));
  EXPECT_THAT(sizes_beside(model, {3, 77, 1, 64, 64}), ElementsAre(2, 65, 1, 80, 112));
  ImportOptions given;
  given.dims = {{"height", {32, 64, {64}, 32}}, {"sequence", {500, 512, {512}}}};
  EXPECT_THAT(sizes_beside(read_model_sizes(open_graph(), given), {1, 512, 1, 64, 17}),
              ElementsAre(1, 504, 1, 32, 19));
}

/// What passes do with pairs of columns, kernels of other sizes have, too.
TEST(ModelSizes, SizesBesideAreHalvedAsOften) {
  ImportOptions given;
  given.dims = {{"height", {132, 512, {132}, 4}}, {"sequence", {9, 15, {12}}}};
  const ModelSizes model = read_model_sizes(open_graph(), given);
  EXPECT_THAT(sizes_beside(model, {1, 12, 1, 132, 1}), ElementsAre(1, 10, 1, 140, 1));
  EXPECT_THAT(sizes_beside(model, {1, 10, 1, 136, 1}), ElementsAre(1, 14, 1, 152, 1));
}

TEST(ModelSizes, ProductsAndSumsOfSizesBesideDiffer) {
  const ModelSizes model = read_model_sizes(open_graph(), {});
  // 3 times 8 would be as many rows again; 3 times 6 would be more than the rows of a kernel for few.
  EXPECT_THAT(sizes_beside(model, {2, 12, 1, 1, 1}), ElementsAre(3, 10, 1, 1, 1));
  EXPECT_THAT(sizes_beside(model, {2, 7, 1, 1, 1}), ElementsAre(3, 5, 1, 1, 1));
}

}  // namespace
}  // namespace sylvite::model_sizes_test

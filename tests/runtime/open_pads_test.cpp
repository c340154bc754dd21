// Pads that follow from sizes: kernels whose windows begin at a number of the run, and plans of models that pad to "same" or to
// whole windows.

#include "frontend/onnx/importer.h"
#include "tests/frontend/onnx/onnx_model.h"
#include "tests/runtime/test_session.h"
#include "tests/runtime/told_plans.h"
#include "tests/support/open_cases.h"

namespace sylvite::open_pads_test {
namespace {

class OpenPads : public testing::TestWithParam<OpenCase> {};

TEST_P(OpenPads, AgreeAtAllSizes) {
  expect_agreement(GetParam(), SIZE_MAX);
}

/// Images of s0 x s1, of which windows by strides of two make s2 x s3, with s4 lines and s5 columns before them.
const std::vector<SymbolValues> images = {
    {{"s0", 16}, {"s1", 16}, {"s2", 8}, {"s3", 8}, {"s4", 0}, {"s5", 0}},
    {{"s0", 17}, {"s1", 20}, {"s2", 9}, {"s3", 10}, {"s4", 1}, {"s5", 0}},
    {{"s0", 22}, {"s1", 29}, {"s2", 11}, {"s3", 15}, {"s4", 0}, {"s5", 1}},
    {{"s0", 19}, {"s1", 17}, {"s2", 10}, {"s3", 9}, {"s4", 1}, {"s5", 1}}};

std::string of_images(const std::string& inputs, const std::string& node) {
  return "graph kernel(" + inputs +
         ") where {s0: 16..@17, s1: 16..@20, s2: 8..15@9, s3: 8..15@10, s4: 0..@1, s5: 0..@0} {\n  %v0: " +
         node + "strides=[2,2]}\n  return %v0\n}\n";
}

/// Lines of s0, which s1 elements ahead and s2 behind make s3 of: some more than the line has.
OpenCase around_lines(const std::string& mode) {
  return {"pad_" + mode,
          "graph kernel(%in0: f32[3,5,s0]) where {s0: 2..@40, s1: 0..@1, s2: 0..@3, s3: 2..@44} {\n"
          "  %v0: f32[3,5,s3] = pad(%in0) {high=[0,0,s2], interior=[], low=[0,0,s1], mode=\"" +
              mode + "\"}\n  return %v0\n}\n",
          "",
          {{{"s0", 40}, {"s1", 1}, {"s2", 3}, {"s3", 44}},
           {{"s0", 131}, {"s1", 0}, {"s2", 1}, {"s3", 132}},
           {{"s0", 100}, {"s1", 17}, {"s2", 40}, {"s3", 157}},
           {{"s0", 5}, {"s1", 11}, {"s2", 23}, {"s3", 39}}}};
}

std::vector<OpenCase> cases() {
  const std::string pads = "pads=[s4,s5,1,1], ", kernel = "{dilations=[1,1], kernel=[3,3], " + pads;
  const auto of_groups = [&](int groups) {
    return "{dilations=[1,1], groups=" + std::to_string(groups) + ", " + pads;
  };
  return {
      around_lines("reflect"),
      around_lines("edge"),
      around_lines("wrap"),
      around_lines("constant"),
      {"convolution",
       of_images("%in0: f32[2,32,s0,s1]@c16, %in1: f32[48,32,3,3]",
                 "f32[2,48,s2,s3]@c16 = conv(%in0, %in1) " + of_groups(1)),
       " in1", images},
      {"depthwise_convolution",
       of_images("%in0: f32[1,32,s0,s1]@c16, %in1: f32[32,1,3,3]",
                 "f32[1,32,s2,s3]@c16 = conv(%in0, %in1) " + of_groups(32)),
       " in1", images},
      {"first_convolution",
       of_images("%in0: f32[1,3,s0,s1], %in1: f32[32,3,3,3]",
                 "f32[1,32,s2,s3]@c16 = conv(%in0, %in1) " + of_groups(1)),
       " in1", images},
      {"dense_convolution",
       of_images("%in0: f32[2,3,s0,s1], %in1: f32[4,3,3,3]",
                 "f32[2,4,s2,s3] = conv(%in0, %in1) " + of_groups(1)),
       " in1", images},
      {"gradient_by_the_filter",
       of_images(
           "%in0: f32[2,32,s2,s3]@c16, %in1: f32[2,16,s0,s1]@c16",
           "f32[1,9,32,16] = filter_gradient(%in0, %in1) {dilations=[1,1], groups=1, joined=0, kernel=[3,3], "
           "pads=[s4,s5,1,1], parts=1, "),
       "", images},
      {"max_pool", of_images("%in0: f32[1,32,s0,s1]@c16", "f32[1,32,s2,s3]@c16 = max_pool(%in0) " + kernel),
       "", images},
      {"mean_with_padding",
       of_images(
           "%in0: f32[1,32,s0,s1]@c16",
           "f32[1,32,s2,s3]@c16 = avg_pool(%in0) {count_include_pad=1, dilations=[1,1], kernel=[3,3], " +
               pads),
       "", images},
      {"mean_without_padding",
       of_images(
           "%in0: f32[2,3,s0,s1]",
           "f32[2,3,s2,s3] = avg_pool(%in0) {count_include_pad=0, dilations=[1,1], kernel=[3,3], " + pads),
       "", images},
      {"signal",
       "graph kernel(%in0: f32[s0,8,s1], %in1: f32[24,8,5]) where {s0: 1..@2, s1: 16..@64, s2: 16..@32, s3: "
       "0..@1} {\n"
       "  %v0: f32[s0,24,s2] = conv(%in0, %in1) {dilations=[1], groups=1, pads=[s3,2], strides=[2]}\n"
       "  return %v0\n}\n",
       " in1",
       {{{"s0", 1}, {"s1", 64}, {"s2", 32}, {"s3", 1}},
        {{"s0", 2}, {"s1", 33}, {"s2", 17}, {"s3", 2}},
        {{"s0", 3}, {"s1", 131}, {"s2", 66}, {"s3", 2}}}},
  };
}

INSTANTIATE_TEST_SUITE_P(Windows, OpenPads, testing::ValuesIn(cases()),
                         [](const auto& each) { return each.param.name; });

void add_same_conv(onnx::GraphProto& graph, const std::string& x, const std::string& y, const Dims& filter,
                   const std::string& pad) {
  add_floats(graph, y + "_w", filter,
             std::vector<float>(static_cast<std::size_t>(checked_product(filter, "w")), 0.5F));
  onnx::NodeProto& conv = add_node(graph, "Conv", {x, y + "_w"}, {y});
  set_text(conv, "auto_pad", pad);
  set_integers(conv, "strides", {2, 2});
}

TEST(PlansWithPads, AreOneForAllRemaindersOfStrides) {
  for (const char* pad : {"SAME_UPPER", "SAME_LOWER"}) {
    onnx::ModelProto model = empty_model(18);
    onnx::GraphProto& graph = *model.mutable_graph();
    add_input(graph, "x", {2, 3, 1, 1});
    for (const auto& [axis, name] : {std::pair(2, "height"), {3, "width"}})
      name_axis(*graph.mutable_input(0), axis, name);
    add_same_conv(graph, "x", "a", {16, 3, 3, 3}, pad);
    add_same_conv(graph, "a", "b", {32, 16, 5, 5}, pad);
    add_same_conv(graph, "b", "y", {16, 32, 3, 3}, pad);
    add_output(graph, "y");
    std::vector<Sizes> learned, asked;
    for (std::int64_t i = 0; i < 12; ++i) learned.push_back({65 + i * 37 % 101, 64 + i * 53 % 97});
    for (std::int64_t i = 0; i < 16; ++i) asked.push_back({70 + i * 5, 150 - i * 5});
    expect_told_plans(model.SerializeAsString(), "height=32..256,width=32..256", learned, asked);
  }
}

/// As exporters write what fills a signal up to whole windows.
TEST(PlansWithPads, FollowFromRemaindersThatTheModelComputes) {
  constexpr int hop = 10;
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {2, 1, 1});
  name_axis(*graph.mutable_input(0), 2, "samples");
  add_integers(graph, "hop", {hop});
  add_integers(graph, "zeros", {0, 0, 0, 0, 0});
  onnx::NodeProto& shape = add_node(graph, "Shape", {"x"}, {"samples"});
  set_integer(shape, "start", 2);
  add_node(graph, "Neg", {"samples"}, {"missing"});
  add_node(graph, "Mod", {"missing", "hop"}, {"rest"});
  set_integer(add_node(graph, "Concat", {"zeros", "rest"}, {"pads"}), "axis", 0);
  add_node(graph, "Pad", {"x", "pads"}, {"padded"});
  add_floats(graph, "w", {16, 1, 2 * hop}, std::vector<float>(16 * 2 * hop, 0.25F));
  set_integers(add_node(graph, "Conv", {"padded", "w"}, {"y"}), "strides", {hop});
  add_output(graph, "y");
  std::vector<Sizes> learned = {
      {200}, {4000}, {208}, {240}};  // ends of ranges and their like are often without a rest
  for (std::int64_t i = 0; i < 10; ++i) learned.push_back({201 + i * 331});
  std::vector<Sizes> asked;
  for (std::int64_t i = 0; i < 40; ++i) asked.push_back({203 + i * 67});
  expect_told_plans(model.SerializeAsString(), "samples=200..4000", learned, asked);
}

/// As PyTorch's exporter writes "same": sizes are divided as floats and rounded up.
TEST(PlansWithPads, FollowFromSizesThatAreRoundedUp) {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {2, 3, 1, 1});
  for (const auto& [axis, name] : {std::pair(2, "height"), {3, "width"}})
    name_axis(*graph.mutable_input(0), axis, name);
  for (const auto& [name, value] : {std::pair("zero", 0), {"one", 1}, {"two", 2}})
    add_integers(graph, name, {value});
  add_integers(graph, "zeros", {0, 0});
  add_floats(graph, "half_of", {1}, {2});
  onnx::NodeProto& shape = add_node(graph, "Shape", {"x"}, {"sides"});
  set_integer(shape, "start", 2);
  set_integer(add_node(graph, "Cast", {"sides"}, {"real"}), "to", onnx::TensorProto::FLOAT);
  add_node(graph, "Div", {"real", "half_of"}, {"quotient"});
  add_node(graph, "Ceil", {"quotient"}, {"rounded"});
  set_integer(add_node(graph, "Cast", {"rounded"}, {"outputs"}), "to", onnx::TensorProto::INT64);
  add_node(graph, "Mul", {"outputs", "two"}, {"doubled"});
  add_node(graph, "Add", {"doubled", "one"}, {"reach"});
  add_node(graph, "Sub", {"reach", "sides"}, {"missing"});
  add_node(graph, "Max", {"missing", "zero"}, {"total"});
  add_node(graph, "Div", {"total", "two"}, {"before"});
  add_node(graph, "Sub", {"total", "before"}, {"after"});
  set_integer(add_node(graph, "Concat", {"zeros", "before", "zeros", "after"}, {"pads"}), "axis", 0);
  add_node(graph, "Pad", {"x", "pads"}, {"padded"});
  add_floats(graph, "w", {16, 3, 3, 3}, std::vector<float>(16 * 27, 0.25F));
  set_integers(add_node(graph, "Conv", {"padded", "w"}, {"y"}), "strides", {2, 2});
  add_output(graph, "y");
  std::vector<Sizes> learned, asked;
  for (std::int64_t i = 0; i < 12; ++i) learned.push_back({65 + i * 37 % 101, 64 + i * 53 % 97});
  for (std::int64_t i = 0; i < 16; ++i) asked.push_back({70 + i * 5, 150 - i * 5});
  expect_told_plans(model.SerializeAsString(), "height=32..256,width=32..256", learned, asked);
}

/// A network that halves images and doubles them again, whose parts are cut to what both have, or padded to the larger.
onnx::ModelProto halves_and_doubles(bool is_cut) {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {2, 16, 1, 1});
  for (const auto& [axis, name] : {std::pair(2, "height"), {3, "width"}})
    name_axis(*graph.mutable_input(0), axis, name);
  for (const auto& [name, filter] : {std::pair("down", Dims{16, 16, 3, 3}), {"up", Dims{16, 16, 2, 2}}})
    add_floats(graph, name, filter,
               std::vector<float>(static_cast<std::size_t>(checked_product(filter, name)), 0.125F));
  add_integers(graph, "two", {2});
  add_integers(graph, "zeros", {0, 0});
  add_integers(graph, "axes", {2, 3});
  set_integers(add_node(graph, "Conv", {"x", "down"}, {"half"}), "strides", {2, 2});
  set_integers(add_node(graph, "ConvTranspose", {"half", "up"}, {"double"}), "strides", {2, 2});
  for (const auto& [value, size] : {std::pair("x", "of_x"), {"double", "of_double"}})
    set_integer(add_node(graph, "Shape", {value}, {size}), "start", 2);
  add_node(graph, "Sub", {"of_x", "of_double"}, {"lack"});
  add_node(graph, "Div", {"lack", "two"}, {"before"});
  if (is_cut) {
    add_node(graph, "Min", {"of_x", "of_double"}, {"least"});
    add_node(graph, "Add", {"before", "least"}, {"end"});
    add_node(graph, "Slice", {"x", "before", "end", "axes"}, {"cut"});
    set_integer(add_node(graph, "Concat", {"cut", "double"}, {"y"}), "axis", 1);
  } else {
    add_node(graph, "Sub", {"lack", "before"}, {"after"});
    set_integer(add_node(graph, "Concat", {"zeros", "before", "zeros", "after"}, {"pads"}), "axis", 0);
    add_node(graph, "Pad", {"double", "pads"}, {"padded"});
    set_integer(add_node(graph, "Concat", {"x", "padded"}, {"y"}), "axis", 1);
  }
  add_output(graph, "y");
  return model;
}

TEST(PlansWithPads, FollowFromDifferencesOfSizes) {
  std::vector<Sizes> learned, asked;
  for (std::int64_t i = 0; i < 24; ++i) learned.push_back({65 + i * 37 % 101, 64 + i * 53 % 97});
  for (std::int64_t i = 0; i < 16; ++i) asked.push_back({70 + i * 5, 150 - i * 5});
  for (const bool is_cut : {true, false})
    expect_told_plans(halves_and_doubles(is_cut).SerializeAsString(), "height=32..256,width=32..256", learned,
                      asked);
}

}  // namespace
}  // namespace sylvite::open_pads_test

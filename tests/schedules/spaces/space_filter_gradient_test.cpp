#include "tests/schedules/fixed_machines.h"
#include "tests/support/bound_space.h"
#include "tests/support/run_kernel.h"

namespace sylvite::space_filter_gradient_test {
namespace {

struct GradientCase {
  Dims x;  ///< N, C, H, W
  std::int64_t out_channels;
  Dims window = {3, 3};
  std::int64_t stride = 1;
  std::int64_t pad = 1;
  std::int64_t dilation = 1;
  int block = 16;
  bool depthwise = false;
};

Kernel gradient_kernel(const GradientCase& c) {
  Graph body;
  TensorType x = make_type(DType::f32, c.x);
  Dims made = {c.x[0], c.out_channels, 0, 0};
  for (std::size_t i = 0; i < 2; ++i)
    made[i + 2] = (c.x[i + 2] + 2 * c.pad - (c.window[i] - 1) * c.dilation - 1) / c.stride + 1;
  TensorType gradient = make_type(DType::f32, made);
  gradient.layout = Layout{c.block};
  if (c.depthwise || c.x[1] >= c.block) x.layout = gradient.layout;
  const ValueId g = body.add_input("g", gradient);
  const ValueId image = body.add_input("x", x);
  body.outputs = {body.add(Op::filter_gradient, {g, image},
                           {{"kernel", c.window},
                            {"strides", Dims{c.stride, c.stride}},
                            {"dilations", Dims{c.dilation, c.dilation}},
                            {"pads", Dims{c.pad, c.pad, c.pad, c.pad}},
                            {"groups", c.depthwise ? c.out_channels : std::int64_t{1}}})};
  return make_kernel(body, {false, false});
}

const Space& gradient_space() {
  return space_named("filter_gradient_blocked");
}

void expect_heuristic(const GradientCase& c) {
  const Kernel kernel = gradient_kernel(c);
  for (const int threads : {1, 2}) {
    const Machine machine = test_machine(threads);
    ASSERT_EQ(gradient_space().bind(kernel, machine).refusal, "");
    EXPECT_EQ(spaces_for(kernel, machine).front().name, "filter_gradient_blocked");
    expect_agrees(kernel, heuristic_candidate(gradient_space(), kernel, machine));
  }
}

TEST(FilterGradient, OfLargeImages) {
  expect_heuristic({.x = {2, 32, 20, 21}, .out_channels = 32});
}
TEST(FilterGradient, OfSmallImages) {
  expect_heuristic({.x = {5, 32, 7, 6}, .out_channels = 48});
}
TEST(FilterGradient, OfStrides) {
  expect_heuristic({.x = {2, 16, 37, 41}, .out_channels = 32, .stride = 2});
}
TEST(FilterGradient, OfAWideWindow) {
  expect_heuristic({.x = {2, 16, 25, 23}, .out_channels = 16, .window = {5, 7}, .pad = 2});
}
TEST(FilterGradient, OfADilatedWindow) {
  expect_heuristic({.x = {2, 16, 22, 22}, .out_channels = 16, .pad = 2, .dilation = 2});
}
TEST(FilterGradient, WithoutBorder) {
  expect_heuristic({.x = {3, 16, 20, 19}, .out_channels = 32, .pad = 0});
}
TEST(FilterGradient, OfFewChannels) {
  expect_heuristic({.x = {2, 3, 40, 41}, .out_channels = 64, .window = {7, 7}, .stride = 2, .pad = 3});
}
TEST(FilterGradient, OfChannelsThatFillNoBlocks) {
  expect_heuristic({.x = {2, 27, 18, 18}, .out_channels = 21});
}
TEST(FilterGradient, OfALine) {
  expect_heuristic({.x = {3, 16, 1, 300}, .out_channels = 16, .window = {1, 3}, .pad = 0});
}

TEST(FilterGradient, OfChannelsApart) {
  expect_heuristic({.x = {3, 40, 15, 16}, .out_channels = 40, .depthwise = true});
  expect_heuristic(
      {.x = {2, 64, 21, 20}, .out_channels = 64, .window = {5, 5}, .stride = 2, .pad = 2, .depthwise = true});
}

TEST(FilterGradient, EightLanes) {
  if (!has_avx2()) GTEST_SKIP() << "this processor has no AVX2";
  const Kernel kernel = gradient_kernel({.x = {2, 24, 19, 17}, .out_channels = 40, .block = 8});
  const auto [machine, target] = avx2_machine(2);
  expect_agrees(kernel, heuristic_candidate(gradient_space(), kernel, machine), 2e-6, target);
}

TEST(FilterGradient, EveryPointAgrees) {
  const Kernel kernel = gradient_kernel({.x = {3, 32, 18, 17}, .out_channels = 64});
  const Machine machine = test_machine(2);
  for (const NamedValues& replaced : std::vector<NamedValues>{{{"channels", 2}, {"blocks", 1}},
                                                              {{"channels", 8}, {"blocks", 1}, {"images", 2}},
                                                              {{"images", 2}, {"parts", 2}},
                                                              {{"parts", 4}, {"apart", 1}},
                                                              {{"images", 4}, {"apart", 1}}})
    expect_agrees(
        kernel,
        bound(gradient_space(), kernel, machine).at(point_with(gradient_space(), kernel, machine, replaced)));
}

TEST(FilterGradient, SaysWhatDoesNotFit) {
  const Machine machine = test_machine(1);
  const Kernel kernel = gradient_kernel({.x = {1, 16, 8, 8}, .out_channels = 48});
  EXPECT_THROW((void)bound(gradient_space(), kernel, machine)
                   .at(point_with(gradient_space(), kernel, machine, {{"blocks", 2}})),
               UnsupportedError);
  const Kernel wide = gradient_kernel({.x = {1, 16, 8, 80}, .out_channels = 16, .window = {1, 40}, .pad = 0});
  EXPECT_NE(gradient_space().bind(wide, machine).refusal, "");
}

}  // namespace
}  // namespace sylvite::space_filter_gradient_test

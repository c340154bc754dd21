#include "tests/schedules/fixed_machines.h"
#include "tests/support/bound_space.h"
#include "tests/support/run_kernel.h"

namespace sylvite::space_conv_rows_test {
namespace {

struct RowsCase {
  Dims x;  ///< N, C, H, W
  std::int64_t channels;
  std::int64_t window = 3;
  std::int64_t stride = 1;
  std::int64_t pad = 1;
  std::int64_t first_window = 1;
  std::int64_t first_stride = 1;
  bool blocked_input = true;
  std::int64_t dilation = 1;
  int block = 16;
};

ValueId add_conv(Graph& body, ValueId x, ValueId weight, ValueId bias, std::int64_t stride, std::int64_t pad,
                 std::int64_t dilation, Layout blocked) {
  const std::int64_t channels = body.type(weight).dims()[0];
  const std::int64_t groups = body.type(weight).dims()[1] == 1 && channels > 1 ? channels : 1;
  const ValueId out = body.add(Op::conv, {x, weight, bias},
                               {{"strides", Dims{stride, stride}},
                                {"dilations", Dims{dilation, dilation}},
                                {"pads", Dims{pad, pad, pad, pad}},
                                {"groups", groups}});
  body.value(out).type.layout = blocked;
  return out;
}

ValueId add_pointwise(Graph& body, Op op, const std::vector<ValueId>& inputs) {
  const ValueId out = body.add(op, inputs);
  body.value(out).type.layout = body.type(inputs.front()).layout;
  return out;
}

/// relu(depthwise(max(conv(x) + 1, 0.5)) + residual): the value between is not zero where its input is, so
/// that a border without zeros shows.
Kernel rows_kernel(const RowsCase& c) {
  Graph body;
  const Layout blocked{c.block};
  TensorType type = make_type(DType::f32, c.x);
  if (c.blocked_input) type.layout = blocked;
  const std::int64_t n = c.channels;
  const ValueId x = body.add_input("x", type);
  const ValueId w1 = body.add_input("w1", make_type(DType::f32, {n, c.x[1], c.first_window, c.first_window}));
  const ValueId b1 = body.add_input("b1", make_type(DType::f32, {n}));
  const ValueId w2 = body.add_input("w2", make_type(DType::f32, {n, 1, c.window, c.window}));
  const ValueId b2 = body.add_input("b2", make_type(DType::f32, {n}));
  const ValueId wide = add_conv(body, x, w1, b1, c.first_stride, c.first_window / 2, 1, blocked);
  const ValueId half = body.add_constant(Tensor::scalar_f32(0.5F));
  const ValueId active = add_pointwise(body, Op::maximum, {add_pointwise(body, Op::add, {wide, half}), half});
  const ValueId deep = add_conv(body, active, w2, b2, c.stride, c.pad, c.dilation, blocked);
  const ValueId residual = body.add_input("residual", body.type(deep));
  body.outputs = {add_pointwise(body, Op::relu, {add_pointwise(body, Op::add, {deep, residual})})};
  return make_kernel(body, {false, true, true, true, true, false});
}

void expect_heuristic(const RowsCase& c) {
  const Kernel kernel = rows_kernel(c);
  const Space& space = space_named("conv_rows");
  for (const int threads : {1, 2}) {
    const Machine machine = test_machine(threads);
    ASSERT_EQ(space.bind(kernel, machine).refusal, "");
    EXPECT_EQ(spaces_for(kernel, machine).front().name, "conv_rows");
    expect_agrees(kernel, heuristic_candidate(space, kernel, machine));
  }
}

TEST(ConvRows, Pointwise) {
  expect_heuristic({.x = {1, 16, 20, 20}, .channels = 48});
}
TEST(ConvRows, Stride) {
  expect_heuristic({.x = {2, 24, 13, 21}, .channels = 32, .stride = 2});
}
TEST(ConvRows, WideWindow) {
  expect_heuristic({.x = {1, 16, 11, 9}, .channels = 32, .window = 5, .pad = 2});
}
TEST(ConvRows, WideWindowWithStride) {
  expect_heuristic({.x = {1, 16, 12, 12}, .channels = 16, .window = 5, .stride = 2, .pad = 2});
}
TEST(ConvRows, Dilated) {
  expect_heuristic({.x = {1, 16, 12, 12}, .channels = 16, .pad = 2, .dilation = 2});
}
TEST(ConvRows, WithoutBorder) {
  expect_heuristic({.x = {1, 16, 9, 9}, .channels = 32, .pad = 0});
}
TEST(ConvRows, OddChannels) {
  expect_heuristic({.x = {1, 24, 9, 10}, .channels = 40});
}
TEST(ConvRows, FirstLayer) {
  expect_heuristic(
      {.x = {1, 3, 18, 22}, .channels = 32, .first_window = 3, .first_stride = 2, .blocked_input = false});
}

TEST(ConvRows, EightLanes) {
  if (!has_avx2()) GTEST_SKIP() << "this processor has no AVX2";
  const Kernel kernel = rows_kernel({.x = {1, 24, 15, 17}, .channels = 56, .stride = 2, .block = 8});
  const Space& space = space_named("conv_rows");
  for (const int threads : {1, 2}) {
    const auto [machine, target] = avx2_machine(threads);
    expect_agrees(kernel, heuristic_candidate(space, kernel, machine), 2e-6, target);
  }
}

TEST(ConvRows, EveryPointAgrees) {
  const Kernel kernel = rows_kernel({.x = {1, 16, 15, 17}, .channels = 56, .stride = 2});
  const Space& space = space_named("conv_rows");
  for (const NamedValues& replaced :
       std::vector<NamedValues>{{{"pixels", 4}, {"row_pixels", 10}, {"blocks", 2}},
                                {{"lines", 3}, {"row_pixels", 13}, {"blocks", 2}},
                                {{"lines", 1}, {"blocks", 1}, {"row_pixels", 7}},
                                {{"lines", 5}, {"blocks", 3}, {"row_pixels", 4}},
                                {{"copy_source", 1}}}) {
    const Machine machine = test_machine(2);
    expect_agrees(kernel, bound(space, kernel, machine).at(point_with(space, kernel, machine, replaced)));
  }
}

TEST(ConvRows, RefusesWithAReason) {
  const Machine machine = test_machine(1);
  const Kernel kernel = rows_kernel({.x = {1, 16, 9, 9}, .channels = 32});
  EXPECT_EQ(space_named("conv_blocked").bind(kernel, machine).refusal,
            "conv after the anchor is not pointwise");
  Graph body = kernel.body;
  body.outputs = {body.node(kernel.anchor).outputs[0]};
  EXPECT_EQ(space_named("conv_rows").bind(make_kernel(body, kernel.input_is_weight), machine).refusal,
            "its output depends on no second convolution");
}

}  // namespace
}  // namespace sylvite::space_conv_rows_test

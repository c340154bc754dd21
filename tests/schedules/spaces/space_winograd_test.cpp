#include "base/error.h"
#include "tests/schedules/fixed_machines.h"
#include "tests/support/bound_space.h"
#include "tests/support/conv_kernels.h"
#include "tests/support/run_kernel.h"

namespace sylvite::space_winograd_test {
namespace {

constexpr double tolerance = 5e-6;  // of the output's scale; sums without transforms get 2e-6

struct WinogradCase {
  Dims x;  ///< N, C, H, W
  std::int64_t out_channels = 16;
  Dims pads = {1, 1, 1, 1};  ///< top, left, bottom, right
  bool bias = true;
  bool residual = false;
  int block = 16;
  bool blocked_input = true;
  std::int64_t window = 3;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
};

/// relu(conv(x, w [, bias]) [+ residual]) into a channel-blocked output.
Kernel winograd_kernel(const WinogradCase& c) {
  Graph body;
  const Layout blocked{c.block};
  TensorType type = make_type(DType::f32, c.x);
  if (c.blocked_input) type.layout = blocked;
  std::vector<bool> weights = {false, true};
  std::vector<ValueId> inputs = {
      body.add_input("x", type),
      body.add_input("w", make_type(DType::f32, {c.out_channels, c.x[1], c.window, c.window}))};
  if (c.bias) {
    inputs.push_back(body.add_input("bias", make_type(DType::f32, {c.out_channels})));
    weights.push_back(true);
  }
  ValueId value = body.add(Op::conv, inputs,
                           {{"strides", Dims{c.stride, c.stride}},
                            {"dilations", Dims{c.dilation, c.dilation}},
                            {"pads", c.pads},
                            {"groups", std::int64_t{1}}});
  body.value(value).type.layout = blocked;
  if (c.residual) {
    const ValueId residual = body.add_input("residual", body.type(value));
    value = body.add(Op::add, {value, residual});
    body.value(value).type.layout = blocked;
    weights.push_back(false);
  }
  value = body.add(Op::relu, {value});
  body.value(value).type.layout = blocked;
  body.outputs = {value};
  return make_kernel(body, weights);
}

/// Both tiles, the transformed input made per task and ahead, one thread and two.
void expect_winograd(const WinogradCase& c, const NamedValues& replaced = {}) {
  const Kernel kernel = winograd_kernel(c);
  const Space& space = space_named("conv_winograd");
  for (const std::int64_t tile : {2, 4}) {
    for (const int threads : {1, 2}) {
      const Machine machine = test_machine(threads);
      ASSERT_EQ(space.bind(kernel, machine).refusal, "");
      NamedValues values = replaced;
      values["tile"] = tile;
      values["input_first"] = threads == 2 ? 1 : tile / 4;
      expect_agrees(kernel, bound(space, kernel, machine).at(point_with(space, kernel, machine, values)),
                    tolerance);
    }
  }
}

TEST(ConvWinograd, WholeTiles) {
  expect_winograd({.x = {1, 32, 8, 12}, .out_channels = 32, .residual = true});
}
TEST(ConvWinograd, OddExtents) {
  expect_winograd({.x = {1, 32, 7, 13}, .out_channels = 48, .residual = true});
}
TEST(ConvWinograd, NoPadding) {
  expect_winograd({.x = {1, 16, 9, 10}, .pads = {0, 0, 0, 0}});
}
TEST(ConvWinograd, PaddingOnOneSide) {
  expect_winograd({.x = {1, 16, 6, 9}, .pads = {0, 1, 1, 0}});
  expect_winograd({.x = {1, 16, 6, 5}, .pads = {2, 0, 0, 3}});
}
TEST(ConvWinograd, Batch) {
  expect_winograd({.x = {2, 16, 6, 5}, .out_channels = 32, .residual = true});
}
TEST(ConvWinograd, OddChannels) {
  expect_winograd({.x = {1, 24, 6, 6}, .out_channels = 40, .residual = true});
  expect_winograd({.x = {1, 19, 5, 6}, .out_channels = 17});
}
TEST(ConvWinograd, NoBias) {
  expect_winograd({.x = {1, 16, 7, 7}, .out_channels = 32, .bias = false});
}
TEST(ConvWinograd, DenseInput) {
  expect_winograd({.x = {1, 20, 6, 6}, .blocked_input = false});
}
TEST(ConvWinograd, SmallerThanATile) {
  expect_winograd({.x = {1, 16, 1, 1}});
  expect_winograd({.x = {1, 16, 3, 1}, .out_channels = 32});
}

TEST(ConvWinograd, OtherPoints) {
  const WinogradCase odd = {.x = {2, 32, 19, 27}, .out_channels = 56, .residual = true};
  expect_winograd(odd, {{"columns", 7}, {"lines", 2}, {"blocks", 2}, {"tile_lines", 4}});
  expect_winograd(odd,
                  {{"columns", 5}, {"lines", 1}, {"blocks", 3}, {"tile_lines", 1}, {"unroll_channels", 4}});
  expect_winograd(odd, {{"columns", 3}, {"lines", 4}, {"blocks", 1}, {"tile_lines", 7}, {"copy_source", 1}});
}

TEST(ConvWinograd, EveryParameterMoved) {
  const Kernel kernel = winograd_kernel({.x = {1, 32, 15, 14}, .out_channels = 64});
  const Space& space = space_named("conv_winograd");
  const Machine machine = test_machine(2);
  for (const Parameter& parameter : bound(space, kernel, machine).parameters) {
    NamedValues values = {{"columns", 3}, {"lines", 2}, {"blocks", 2}};
    values[parameter.name] = parameter.values.back();
    expect_agrees(kernel, bound(space, kernel, machine).at(point_with(space, kernel, machine, values)),
                  tolerance);
  }
}

TEST(ConvWinograd, TakesAComputedInput) {
  const Kernel kernel = conv_of_computed_input();
  const Space& space = space_named("conv_winograd");
  const Machine machine = test_machine(1);
  ASSERT_EQ(space.bind(kernel, machine).refusal, "");
  expect_agrees(kernel, heuristic_candidate(space, kernel, machine), tolerance);
}

TEST(ConvWinograd, EightLanes) {
  if (!has_avx2()) GTEST_SKIP() << "this processor has no AVX2";
  const auto [machine, target] = avx2_machine(1);
  const Kernel kernel =
      winograd_kernel({.x = {1, 24, 9, 14}, .out_channels = 40, .residual = true, .block = 8});
  const Space& space = space_named("conv_winograd");
  expect_agrees(kernel, heuristic_candidate(space, kernel, machine), tolerance, target);
  for (const std::int64_t tile : {2, 4}) {
    const Point point =
        point_with(space, kernel, machine, {{"tile", tile}, {"columns", 3}, {"lines", 2}, {"blocks", 2}});
    expect_agrees(kernel, bound(space, kernel, machine).at(point), tolerance, target);
  }
}

/// Transformed lines that the L2 does not hold are read from behind it; filters that it does not, once for each group of lines.
TEST(ConvWinograd, GroupsLinesByWhatTheL2Holds) {
  Machine machine = test_machine(1);
  machine.l2_bytes = 2 << 20;
  const auto lines_of = [&](std::int64_t channels, std::int64_t height, std::int64_t width) {
    const Kernel kernel =
        winograd_kernel({.x = {1, channels, height, width}, .out_channels = channels, .bias = false});
    const BoundSpace space = bound(space_named("conv_winograd"), kernel, machine);
    return named_values(space, space.heuristic).at("tile_lines");
  };
  EXPECT_LE(lines_of(32, 84, 96), 4);
  EXPECT_GE(lines_of(128, 28, 28), 4);
  EXPECT_GE(lines_of(512, 28, 28), 2);
}

TEST(ConvWinograd, RefusesWithAReason) {
  const Space& space = space_named("conv_winograd");
  const auto reason = [&](const WinogradCase& c) {
    return space.bind(winograd_kernel(c), test_machine(1)).refusal;
  };
  EXPECT_EQ(reason({.x = {1, 16, 7, 7}, .pads = {2, 2, 2, 2}, .window = 5}),
            "its window is 5 x 5, not 3 x 3");
  EXPECT_EQ(reason({.x = {1, 16, 7, 7}, .stride = 2}), "its strides are 2 and 2, not 1");
  EXPECT_EQ(reason({.x = {1, 16, 7, 7}, .dilation = 2}), "its dilations are 2 and 2, not 1");
  EXPECT_EQ(reason({.x = {1, 3, 7, 7}, .blocked_input = false}),
            "its input has 3 channels, less than a block of 16");
}

TEST(ConvWinograd, CanBeTurnedOff) {
  Machine machine = test_machine(1);
  machine.winograd = false;
  EXPECT_EQ(space_named("conv_winograd").bind(winograd_kernel({.x = {1, 16, 7, 7}}), machine).refusal,
            "schedules.winograd is off");
}

TEST(ConvWinograd, RefusesTilesThatDoNotFitTheRegisters) {
  const Kernel kernel = winograd_kernel({.x = {1, 16, 56, 56}, .out_channels = 64});
  const Space& space = space_named("conv_winograd");
  const Machine machine = test_machine(1);
  const Point point = point_with(space, kernel, machine, {{"columns", 14}, {"lines", 1}, {"blocks", 4}});
  EXPECT_THROW((void)bound(space, kernel, machine).at(point), UnsupportedError);
}

/// Large layers must be tried as Winograd's early: the model must prefer it to the direct form there.
TEST(ConvWinograd, RanksBeforeTheDirectFormWhereItPays) {
  const Machine machine = test_machine(1);
  const Kernel kernel = winograd_kernel({.x = {1, 64, 56, 56}, .out_channels = 64});
  const auto cost = [&](const Space& space) {
    return bound(space, kernel, machine).cost(bound(space, kernel, machine).heuristic);
  };
  EXPECT_LT(cost(space_named("conv_winograd")), 0.7 * cost(space_named("conv_blocked")));
}

TEST(ConvWinograd, IsTheDefaultWhereItShouldPay) {
  Machine machine = test_machine(1);
  machine.l2_bytes = 1 << 20;
  const auto form = [&](const Dims& x, std::int64_t out_channels) {
    return default_candidate(winograd_kernel({.x = x, .out_channels = out_channels}), machine).form.name;
  };
  EXPECT_EQ(form({1, 64, 56, 56}, 64), "conv_winograd");
  EXPECT_EQ(form({1, 128, 28, 28}, 32), "conv_winograd");
  EXPECT_EQ(form({1, 16, 8, 8}, 16), "conv_blocked");
  machine.winograd = false;
  EXPECT_EQ(form({1, 64, 56, 56}, 64), "conv_blocked");
}

}  // namespace
}  // namespace sylvite::space_winograd_test

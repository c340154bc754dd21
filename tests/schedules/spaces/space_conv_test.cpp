#include "tests/schedules/fixed_machines.h"
#include "tests/support/bound_space.h"
#include "tests/support/conv_kernels.h"
#include "tests/support/run_kernel.h"

namespace sylvite::space_conv_test {
namespace {

struct ConvCase {
  Dims x;  ///< N, C, H, W
  std::int64_t out_channels;
  std::int64_t window;
  std::int64_t stride = 1;
  std::int64_t pad = 0;
  bool blocked_input = true;
  bool depthwise = false;
  bool residual = false;
  std::int64_t dilation = 1;
  int block = 16;
  bool is_own_weight = true;  ///< the filter; else the kernel packs it
};

/// relu(conv(x, w, bias) [+ residual]) into a channel-blocked output.
Kernel conv_kernel(const ConvCase& c) {
  Graph body;
  const Layout blocked{c.block};
  TensorType type = make_type(DType::f32, c.x);
  if (c.blocked_input) type.layout = blocked;
  const ValueId x = body.add_input("x", type);
  const ValueId weight = body.add_input(
      "w", make_type(DType::f32, {c.out_channels, c.depthwise ? 1 : c.x[1], c.window, c.window}));
  const ValueId bias = body.add_input("bias", make_type(DType::f32, {c.out_channels}));
  ValueId value = body.add(Op::conv, {x, weight, bias},
                           {{"strides", Dims{c.stride, c.stride}},
                            {"dilations", Dims{c.dilation, c.dilation}},
                            {"pads", Dims{c.pad, c.pad, c.pad, c.pad}},
                            {"groups", c.depthwise ? c.out_channels : std::int64_t{1}}});
  body.value(value).type.layout = blocked;
  std::vector<bool> weights = {false, c.is_own_weight, true};
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

void expect_heuristic(ConvCase c, int threads) {
  const Space& space = space_named(c.depthwise ? "depthwise_blocked" : "conv_blocked");
  const Machine machine = test_machine(threads);
  for (const bool is_own_weight : {true, false}) {
    c.is_own_weight = is_own_weight;
    const Kernel kernel = conv_kernel(c);
    ASSERT_EQ(space.bind(kernel, machine).refusal, "");
    expect_agrees(kernel, heuristic_candidate(space, kernel, machine));
  }
}

TEST(ConvBlocked, ThreeByThree) {
  expect_heuristic({.x = {1, 32, 14, 14}, .out_channels = 32, .window = 3, .pad = 1, .residual = true}, 1);
}
TEST(ConvBlocked, Pointwise) {
  expect_heuristic({.x = {2, 48, 7, 7}, .out_channels = 64, .window = 1, .residual = true}, 2);
}
TEST(ConvBlocked, PointwiseWithStride) {
  expect_heuristic({.x = {1, 16, 14, 14}, .out_channels = 48, .window = 1, .stride = 2}, 1);
}
TEST(ConvBlocked, OddChannels) {
  expect_heuristic(
      {.x = {1, 24, 9, 9}, .out_channels = 40, .window = 3, .stride = 2, .pad = 1, .residual = true}, 2);
}
TEST(ConvBlocked, DenseFirstLayer) {
  expect_heuristic(
      {.x = {2, 3, 20, 20}, .out_channels = 24, .window = 7, .stride = 2, .pad = 3, .blocked_input = false},
      2);
}
TEST(ConvBlocked, DenseManyChannels) {
  expect_heuristic({.x = {1, 20, 6, 6}, .out_channels = 16, .window = 3, .pad = 1, .blocked_input = false},
                   1);
}
TEST(ConvBlocked, FewBlockedChannels) {
  expect_heuristic({.x = {1, 3, 8, 8}, .out_channels = 16, .window = 3}, 1);
}
TEST(ConvBlocked, Dilated) {
  expect_heuristic({.x = {1, 16, 11, 11}, .out_channels = 16, .window = 3, .pad = 2, .dilation = 2}, 1);
}
TEST(ConvBlocked, OnePixel) {
  expect_heuristic({.x = {1, 40, 1, 1}, .out_channels = 10, .window = 1}, 2);
}

TEST(ConvBlocked, EveryPointAgrees) {
  const Kernel kernel =
      conv_kernel({.x = {1, 32, 9, 13}, .out_channels = 56, .window = 3, .pad = 1, .residual = true});
  const Space& space = space_named("conv_blocked");
  for (const NamedValues& replaced : std::vector<NamedValues>{
           {{"pixels", 13}, {"blocks", 2}},
           {{"pixels", 7}, {"blocks", 3}, {"line_tiles", 2}},
           {{"pixels", 3}, {"lines", 4}, {"blocks", 1}, {"lines_outer", 1}},
           {{"pixels", 4}, {"copy_source", 0}, {"unroll_channels", 4}},
           {{"pixels", 5}, {"blocks", 3}, {"stream_ahead", 1}},
           {{"pixels", 6}, {"blocks", 2}, {"copy_source", 2}, {"line_tiles", 1}, {"stream_ahead", 1}},
           {{"blocks", 2}, {"lines_outer", 1}, {"unroll_channels", 2}, {"stream_ahead", 2}},
           {{"slices", 1}, {"pixels", 1}, {"lines", 4}, {"blocks", 3}, {"stream_ahead", 0}},
           {{"slices", 1}, {"pixels", 5}, {"line_tiles", 2}, {"lines_outer", 1}, {"stream_ahead", 0}}}) {
    for (const int threads : {1, 2}) {
      const Machine machine = test_machine(threads);
      expect_agrees(kernel, bound(space, kernel, machine).at(point_with(space, kernel, machine, replaced)));
    }
  }
}

/// Dilated, of many channels: a tile's filters and the image are larger than the L2.
TEST(ConvBlocked, FoldsInSlicesWhatTheCacheCannotHold) {
  const ConvCase large{.x = {1, 1024, 14, 14}, .out_channels = 16, .window = 3, .pad = 12, .dilation = 12};
  const Kernel kernel = conv_kernel(large);
  for (const int threads : {1, 2}) {
    const Machine machine = test_machine(threads);
    const BoundSpace taken = bound(space_named("conv_blocked"), kernel, machine);
    const Candidate first = taken.at(taken.heuristic);
    EXPECT_NE(first.schedule.to_string().find("MemoryType::Stack"), std::string::npos);
    expect_agrees(kernel, first);
  }
}

/// Wherever these come from: each load of them is one less for the pixels.
TEST(ConvBlocked, LinesShareTheFiltersOfASingleBlock) {
  const Machine machine = test_machine(1);
  const auto lines = [&](std::int64_t channels) {
    const Kernel kernel =
        conv_kernel({.x = {1, channels, 16, 32}, .out_channels = 16, .window = 5, .pad = 2});
    const BoundSpace taken = bound(space_named("conv_blocked"), kernel, machine);
    if (channels > 16) expect_agrees(kernel, taken.at(taken.heuristic));
    return named_values(taken, taken.heuristic).at("lines");
  };
  EXPECT_EQ(lines(16), 2);
  EXPECT_EQ(lines(96), 2);
}

/// Two lines a task; whole ones only.
TEST(ConvBlocked, CopiesLines) {
  const Space& space = space_named("conv_blocked");
  for (const ConvCase& c :
       {ConvCase{.x = {2, 24, 8, 13}, .out_channels = 72, .window = 1, .residual = true},
        ConvCase{.x = {1, 32, 8, 9}, .out_channels = 48, .window = 3, .pad = 2, .dilation = 2},
        ConvCase{.x = {1, 16, 15, 11}, .out_channels = 40, .window = 3, .stride = 2, .pad = 1}}) {
    const Kernel kernel = conv_kernel(c);
    for (const int threads : {1, 2}) {
      const Machine machine = test_machine(threads);
      const NamedValues replaced = {
          {"pixels", 5}, {"lines", 1}, {"blocks", 2}, {"copy_source", 2}, {"line_tiles", 2}};
      expect_agrees(kernel, bound(space, kernel, machine).at(point_with(space, kernel, machine, replaced)));
    }
  }
}

/// An image beyond the L2 whose channels crowd a few sets of it, read by many blocks.
TEST(ConvBlocked, CopiesLinesOfCrowdedImages) {
  const Space& space = space_named("conv_blocked");
  const auto chosen = [&](const ConvCase& c) {
    const Kernel kernel = conv_kernel(c);
    const BoundSpace taken = bound(space, kernel, test_machine(2));
    return named_values(taken, taken.heuristic).at("copy_source");
  };
  EXPECT_EQ(chosen({.x = {1, 1024, 64, 64}, .out_channels = 256, .window = 1}), 2);
  EXPECT_EQ(chosen({.x = {1, 1024, 56, 56}, .out_channels = 256, .window = 1}), 0) << "planes lie well";
  EXPECT_EQ(chosen({.x = {1, 1024, 64, 64}, .out_channels = 32, .window = 1}), 0) << "few read it";
  EXPECT_EQ(chosen({.x = {1, 64, 14, 14}, .out_channels = 256, .window = 1}), 0) << "it is small";
  EXPECT_EQ(chosen({.x = {1, 1024, 64, 64}, .out_channels = 256, .window = 1, .stride = 2}), 0)
      << "a quarter is read";
}

/// As gradients by filters are: windows as large as maps.
TEST(ConvBlocked, LargeWindowsOfOtherValues) {
  expect_heuristic({.x = {5, 2, 15, 13}, .out_channels = 24, .window = 11, .pad = 1, .blocked_input = false},
                   2);
  expect_heuristic({.x = {3, 20, 9, 9}, .out_channels = 40, .window = 7, .pad = 1}, 2);
  expect_heuristic({.x = {1, 40, 12, 12}, .out_channels = 40, .window = 10, .pad = 1, .depthwise = true}, 2);
}

/// Turned in space and between its channels, or in blocks: as gradients read them.
TEST(ConvBlocked, PacksViewsOfFilters) {
  const Space& space = space_named("conv_blocked");
  for (const char* text : {R"(graph g(%x: f32[2,40,7,9]@c16, %w: f32[40,24,3,3]) {
             %s: f32[40,24,3,3] = slice(%w) {sizes=[40,24,3,3], starts=[0,0,2,2], steps=[1,1,-1,-1]}
             %t: f32[24,40,3,3] = transpose(%s) {perm=[1,0,2,3]}
             %y: f32[2,24,7,9]@c16 = conv(%x, %t) {dilations=[1,1], groups=1, pads=[1,1,1,1], strides=[1,1]}
             return %y })",
                           R"(graph g(%x: f32[5,2,9,9], %w: f32[2,24,7,7]@c16) {
             %s: f32[2,24,7,7] = to_layout(%w) {block=0}
             %t: f32[24,2,7,7] = transpose(%s) {perm=[1,0,2,3]}
             %y: f32[5,24,3,3]@c16 = conv(%x, %t) {dilations=[1,1], groups=1, pads=[0,0,0,0], strides=[1,1]}
             return %y })"}) {
    const Kernel kernel = make_kernel(parse_graph(text), {false, false});
    for (const int threads : {1, 2}) {
      const Machine machine = test_machine(threads);
      ASSERT_EQ(space.bind(kernel, machine).refusal, "");
      expect_agrees(kernel, heuristic_candidate(space, kernel, machine));
    }
  }
}

TEST(ConvBlocked, EightLanes) {
  if (!has_avx2()) GTEST_SKIP() << "this processor has no AVX2";
  const Space& space = space_named("conv_blocked");
  for (const int threads : {1, 2}) {
    const auto [machine, target] = avx2_machine(threads);
    for (const ConvCase& c :
         {ConvCase{.x = {1, 24, 14, 14}, .out_channels = 40, .window = 1, .residual = true, .block = 8},
          ConvCase{.x = {1, 20, 9, 13}, .out_channels = 56, .window = 3, .stride = 2, .pad = 1, .block = 8},
          ConvCase{.x = {1, 3, 19, 22},
                   .out_channels = 32,
                   .window = 7,
                   .pad = 3,
                   .blocked_input = false,
                   .block = 8}}) {
      const Kernel kernel = conv_kernel(c);
      expect_agrees(kernel, heuristic_candidate(space, kernel, machine), 2e-6, target);
    }
  }
}

/// Two multiply-adds a cycle, each ready after four: fewer than eight sums wait for one another. Blocks of
/// eight once counted as two vectors, which left tiles of four sums.
TEST(ConvBlocked, TilesOfEightLanesFillTheRegisters) {
  const Machine machine = avx2_machine(1).machine;
  const Space& space = space_named("conv_blocked");
  for (const std::int64_t width : {7, 14, 28, 56}) {
    const Kernel kernel =
        conv_kernel({.x = {1, 64, width, width}, .out_channels = 64, .window = 1, .block = 8});
    const BoundSpace taken = bound(space, kernel, machine);
    const NamedValues point = named_values(taken, taken.heuristic);
    const std::int64_t sums = point.at("pixels") * point.at("lines") * point.at("blocks");
    EXPECT_GE(sums, 10) << width;
    EXPECT_LE(sums, 14) << width;
  }
}

/// A line of 13 or 14 pixels leaves room for one block: each block then reads the source anew, from the L2 or
/// from behind it.
TEST(ConvBlocked, TilesOfEightLanesReadALargeSourceForSeveralBlocks) {
  const Machine machine = avx2_machine(1).machine;
  const Space& space = space_named("conv_blocked");
  for (const std::int64_t width : {13, 28}) {
    const Kernel kernel =
        conv_kernel({.x = {1, 512, width, width}, .out_channels = 128, .window = 1, .block = 8});
    const BoundSpace taken = bound(space, kernel, machine);
    EXPECT_GE(named_values(taken, taken.heuristic).at("blocks"), 2) << width;
  }
}

TEST(ConvBlocked, TakesAComputedInput) {
  const Kernel kernel = conv_of_computed_input();
  const Space& space = space_named("conv_blocked");
  const Machine machine = test_machine(1);
  ASSERT_EQ(space.bind(kernel, machine).refusal, "");
  expect_agrees(kernel, heuristic_candidate(space, kernel, machine));
}

TEST(ConvBlocked, RefusesWithAReason) {
  const Machine machine = test_machine(1);
  EXPECT_EQ(space_named("depthwise_blocked")
                .bind(conv_kernel({.x = {1, 32, 7, 7}, .out_channels = 32, .window = 3}), machine)
                .refusal,
            "it is not depthwise");
  EXPECT_EQ(space_named("conv_blocked")
                .bind(conv_kernel({.x = {1, 32, 7, 7}, .out_channels = 32, .window = 3, .depthwise = true}),
                      machine)
                .refusal,
            "it has 32 groups");
}

TEST(DepthwiseBlocked, Heuristics) {
  expect_heuristic({.x = {1, 32, 14, 14}, .out_channels = 32, .window = 3, .pad = 1, .depthwise = true}, 1);
  expect_heuristic(
      {.x = {2, 24, 9, 9}, .out_channels = 24, .window = 5, .stride = 2, .pad = 2, .depthwise = true}, 2);
  expect_heuristic({.x = {1, 20, 6, 6},
                    .out_channels = 20,
                    .window = 3,
                    .pad = 1,
                    .blocked_input = false,
                    .depthwise = true},
                   1);
}

TEST(DepthwiseBlocked, EveryPointAgrees) {
  const Kernel kernel = conv_kernel(
      {.x = {1, 40, 9, 15}, .out_channels = 40, .window = 3, .pad = 1, .depthwise = true, .residual = true});
  const Space& space = space_named("depthwise_blocked");
  for (const NamedValues& replaced :
       std::vector<NamedValues>{{{"pixels", 7}, {"copy_source", 1}},
                                {{"pixels", 4}, {"lines", 2}, {"copy_source", 0}, {"line_tiles", 1}},
                                {{"pixels", 1}, {"lines_outer", 1}, {"line_tiles", 3}}}) {
    const Machine machine = test_machine(2);
    expect_agrees(kernel, bound(space, kernel, machine).at(point_with(space, kernel, machine, replaced)));
  }
}

}  // namespace
}  // namespace sylvite::space_conv_test

// Grouped convolutions in blocks of channels.

#include "lowering/plan/grouped_filter.h"
#include "tests/schedules/fixed_machines.h"
#include "tests/support/bound_space.h"
#include "tests/support/run_kernel.h"

namespace sylvite::grouped_conv_test {
namespace {

struct GroupedCase {
  std::int64_t channels;  ///< of the input, in a group
  std::int64_t filters;   ///< of a group
  std::int64_t groups;
  std::int64_t width = 9;
  std::int64_t window = 3;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  Dims pads = {1, 1, 1, 1};
  DType element = DType::f32;
  int block = 16;
  bool is_own_weight = true;  ///< the filter; else the kernel packs it
};

/// relu(conv(x, w, bias) + residual) in blocks.
Kernel grouped_kernel(const GroupedCase& c) {
  Graph body;
  TensorType image = make_type(c.element, {2, c.channels * c.groups, 7, c.width});
  image.layout.channel_block = c.block;
  const ValueId x = body.add_input("x", image);
  const ValueId weight =
      body.add_input("w", make_type(c.element, {c.filters * c.groups, c.channels, c.window, c.window}));
  const ValueId bias = body.add_input("bias", make_type(DType::f32, {c.filters * c.groups}));
  ValueId value = body.add(Op::conv, {x, weight, bias},
                           {{"strides", Dims{c.stride, c.stride}},
                            {"dilations", Dims{c.dilation, c.dilation}},
                            {"pads", c.pads},
                            {"groups", c.groups}});
  body.value(value).type.layout.channel_block = c.block;
  value = body.add(Op::add, {value, body.add_input("residual", body.type(value))});
  body.value(value).type.layout.channel_block = c.block;
  value = body.add(Op::relu, {value});
  body.value(value).type.layout.channel_block = c.block;
  body.outputs = {value};
  return make_kernel(body, {false, c.is_own_weight, true, false});
}

std::string refusal(const GroupedCase& c, const char* space) {
  return space_named(space).bind(grouped_kernel(c), fixed_machine("avx512")).refusal;
}

TEST(GroupedBlocks, AgreesWithTheInterpreter) {
  const Space& space = space_named("conv_blocked");
  for (const GroupedCase& c :
       {GroupedCase{.channels = 16, .filters = 16, .groups = 3, .window = 1, .pads = {0, 0, 0, 0}},
        {.channels = 8, .filters = 16, .groups = 3, .width = 20, .stride = 2},
        {.channels = 32, .filters = 64, .groups = 2, .pads = {0, 2, 1, 0}},
        {.channels = 24, .filters = 24, .groups = 3, .width = 14},
        {.channels = 6, .filters = 48, .groups = 2, .width = 15, .dilation = 2},
        {.channels = 6, .filters = 48, .groups = 2, .width = 15, .is_own_weight = false},
        {.channels = 16, .filters = 24, .groups = 3, .window = 1, .is_own_weight = false},
        {.channels = 28, .filters = 56, .groups = 2, .width = 7}}) {
    for (const int threads : {1, 2}) {
      const Machine machine = test_machine(threads);
      const Kernel kernel = grouped_kernel(c);
      ASSERT_EQ(space.bind(kernel, machine).refusal, "") << c.channels;
      const BoundSpace taken = bound(space, kernel, machine);
      check_candidate(kernel, taken.at(taken.heuristic));
      check_candidate(kernel, taken.at(far_point(taken)));
    }
  }
}

TEST(GroupedBlocks, EightLanesAgree) {
  if (!has_avx2()) GTEST_SKIP() << "this processor has no AVX2";
  const auto [machine, target] = avx2_machine(2);
  for (const GroupedCase& c : {GroupedCase{.channels = 8, .filters = 8, .groups = 5, .block = 8},
                               {.channels = 28, .filters = 28, .groups = 3, .stride = 2, .block = 8},
                               {.channels = 16, .filters = 24, .groups = 2, .width = 14, .block = 8}}) {
    const Kernel kernel = grouped_kernel(c);
    expect_agrees(kernel, heuristic_candidate(space_named("conv_blocked"), kernel, machine), 2e-6, target);
  }
}

/// Tiles of several blocks share what they read.
TEST(GroupedBlocks, TilesStayWithinAGroup) {
  const Machine machine = fixed_machine("avx512");
  const auto blocks = [&](const GroupedCase& c) {
    const Kernel kernel = grouped_kernel(c);
    const BoundSpace space = bound(space_named("conv_blocked"), kernel, machine);
    return named_values(space, space.heuristic).at("blocks");
  };
  EXPECT_EQ(blocks({.channels = 16, .filters = 16, .groups = 4, .width = 56}), 1);
  EXPECT_EQ(blocks({.channels = 24, .filters = 24, .groups = 4, .width = 56}), 1);
  EXPECT_EQ(96 / 16 % blocks({.channels = 32, .filters = 96, .groups = 2, .width = 56}), 0);
}

TEST(GroupedBlocks, OtherTemplatesAndNarrowGroupsAreRefused) {
  EXPECT_EQ(refusal({.channels = 16, .filters = 16, .groups = 4}, "conv_blocked"), "");
  EXPECT_EQ(refusal({.channels = 2, .filters = 2, .groups = 32}, "conv_blocked"), "it has 32 groups");
  EXPECT_EQ(refusal({.channels = 1, .filters = 1, .groups = 4}, "conv_blocked"), "it has 4 groups");
  EXPECT_EQ(refusal({.channels = 16, .filters = 16, .groups = 4}, "conv_winograd"), "it has 4 groups");
}

}  // namespace
}  // namespace sylvite::grouped_conv_test

#include <gmock/gmock.h>

#include <ostream>

#include "schedules/compile.h"
#include "tests/schedules/fixed_machines.h"
#include "tests/support/bf16_reference.h"
#include "tests/support/bound_space.h"
#include "tests/support/run_kernel.h"

// Convolutions of bf16 through AMX, beside the interpreter in f32 on the same numbers: products of bf16 are
// exact in f32 and are added up in f32, so that only the stored result is rounded, by 2^-9 of itself.

namespace sylvite::space_conv_amx_test {
namespace {

struct ConvCase {
  const char* name;
  const char* space;  ///< the one that default mode must choose
  const char* text;
};
void PrintTo(const ConvCase& one, std::ostream* out) {
  *out << one.name;
}

const ConvCase cases[] = {
    {"window_3x3_with_residual", "conv_amx",
     R"(graph g(%x: bf16[1,64,9,29]@c32, %w: bf16[56,64,3,3], %wb: f32[56], %r: bf16[1,56,9,29]@c32) { %v: bf16[1,56,9,29]@c32 = conv(%x, %w, %wb) {strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=1} %s: bf16[1,56,9,29]@c32 = add(%v, %r) %o: bf16[1,56,9,29]@c32 = relu(%s) return %o })"},
    {"padded_channels", "conv_amx",
     R"(graph g(%x: bf16[2,24,14,14]@c32, %w: bf16[40,24,1,1]) { %v: bf16[2,40,14,14]@c32 = conv(%x, %w) {strides=[1,1], pads=[0,0,0,0], dilations=[1,1], groups=1} %o: bf16[2,40,14,14]@c32 = hard_swish(%v) return %o })"},
    {"odd_channels", "conv_amx",
     R"(graph g(%x: bf16[1,37,5,6]@c32, %w: bf16[33,37,3,3]) { %v: bf16[1,33,5,6]@c32 = conv(%x, %w) {strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=1} return %v })"},
    {"small_plane", "conv_amx",
     R"(graph g(%x: bf16[2,64,7,7]@c32, %w: bf16[96,64,3,3], %wb: f32[96]) { %v: bf16[2,96,7,7]@c32 = conv(%x, %w, %wb) {strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=1} return %v })"},
    {"small_plane_1x1", "conv_amx",
     R"(graph g(%x: bf16[1,96,7,7]@c32, %w: bf16[64,96,1,1], %wb: bf16[64]) { %v: bf16[1,64,7,7]@c32 = conv(%x, %w, %wb) {strides=[1,1], pads=[0,0,0,0], dilations=[1,1], groups=1} return %v })"},
    {"stride_2", "conv_amx",
     R"(graph g(%x: bf16[1,32,15,15]@c32, %w: bf16[64,32,3,3]) { %v: bf16[1,64,8,8]@c32 = conv(%x, %w) {strides=[2,2], pads=[1,1,1,1], dilations=[1,1], groups=1} return %v })"},
    {"dilated", "conv_amx",
     R"(graph g(%x: bf16[1,32,11,11]@c32, %w: bf16[32,32,3,3]) { %v: bf16[1,32,11,11]@c32 = conv(%x, %w) {strides=[1,1], pads=[2,2,2,2], dilations=[2,2], groups=1} return %v })"},
    {"image_7x7", "conv_lines_amx",
     R"(graph g(%x: bf16[2,3,21,40], %w: bf16[24,3,7,7], %wb: f32[24]) { %v: bf16[2,24,11,20]@c32 = conv(%x, %w, %wb) {strides=[2,2], pads=[3,3,3,3], dilations=[1,1], groups=1} %o: bf16[2,24,11,20]@c32 = relu(%v) return %o })"},
    {"patches_16x16", "conv_lines_amx",
     R"(graph g(%x: bf16[1,3,48,80], %w: bf16[40,3,16,16], %wb: f32[40]) { %v: bf16[1,40,3,5]@c32 = conv(%x, %w, %wb) {strides=[16,16], pads=[0,0,0,0], dilations=[1,1], groups=1} return %v })"},
    {"image_3x3", "conv_lines_amx",
     R"(graph g(%x: bf16[1,3,8,18], %w: bf16[64,3,3,3]) { %v: bf16[1,64,6,16]@c32 = conv(%x, %w) {strides=[1,1], pads=[0,0,0,0], dilations=[1,1], groups=1} return %v })"},
    {"stride_2_1x1", "conv_amx",
     R"(graph g(%x: bf16[2,64,14,14]@c32, %w: bf16[96,64,1,1], %wb: f32[96]) { %v: bf16[2,96,7,7]@c32 = conv(%x, %w, %wb) {strides=[2,2], pads=[0,0,0,0], dilations=[1,1], groups=1} %o: bf16[2,96,7,7]@c32 = relu(%v) return %o })"},
    {"strides_apart_dilated", "conv_amx",
     R"(graph g(%x: bf16[1,37,13,6]@c32, %w: bf16[32,37,3,3]) { %v: bf16[1,32,7,6]@c32 = conv(%x, %w) {strides=[2,1], pads=[2,2,2,2], dilations=[2,2], groups=1} return %v })"},
};

/// The source is computed in the kernel: what lies outside is zero nevertheless.
const ConvCase computed_cases[] = {
    {"pixels", "conv_amx",
     R"(graph g(%x: bf16[2,70,13,20]@c32, %s: bf16[1,70,1,1]@c32, %w: bf16[40,70,1,1]) { %i: bf16[2,70,13,20]@c32 = maximum(%x, %s) %v: bf16[2,40,13,20]@c32 = conv(%i, %w) {strides=[1,1], pads=[0,0,0,0], dilations=[1,1], groups=1} return %v })"},
    {"window", "conv_amx",
     R"(graph g(%x: bf16[1,64,9,15]@c32, %s: bf16[1,64,1,1]@c32, %w: bf16[40,64,3,3]) { %i: bf16[1,64,9,15]@c32 = maximum(%x, %s) %v: bf16[1,40,5,8]@c32 = conv(%i, %w) {strides=[2,2], pads=[1,1,1,1], dilations=[1,1], groups=1} return %v })"},
};

/// The heuristic point, and for each parameter the points that differ from it there alone.
std::vector<Point> points_of(const BoundSpace& space) {
  std::vector<Point> points = {space.heuristic};
  for (const Parameter& parameter : space.parameters) {
    for (const std::int64_t value : parameter.values) {
      points.push_back(point_with(space, {{parameter.name, value}}));
      points.push_back(point_with(space, {{parameter.name, value}, {"flat", 0}}));
    }
  }
  return points;
}

class ConvAmx : public testing::TestWithParam<ConvCase> {};

TEST_P(ConvAmx, AgreesWithF32) {
  const Kernel kernel = kernel_of(GetParam().text);
  const Machine machine = detect_machine(2);
  if (!machine.amx) GTEST_SKIP() << "the processor has no AMX, or the system does not let programs use it";
  const BoundSpace space = spaces_for(kernel, machine).front();
  ASSERT_EQ(space.name, GetParam().space);
  EXPECT_GT(expect_as_in_f32(GetParam().text, space, points_of(space)), 3U);
}
INSTANTIATE_TEST_SUITE_P(All, ConvAmx, testing::ValuesIn(cases),
                         [](const auto& one) { return std::string(one.param.name); });
INSTANTIATE_TEST_SUITE_P(Computed, ConvAmx, testing::ValuesIn(computed_cases),
                         [](const auto& one) { return std::string(one.param.name); });

// With one thread and with more; the last task has fewer lines.
TEST(ConvAmx, CopiesTheLinesOfATask) {
  for (const int threads : {1, 2}) {
    const Machine machine = detect_machine(threads);
    if (!machine.amx) GTEST_SKIP() << "the processor has no AMX, or the system does not let programs use it";
    for (const ConvCase& one :
         {cases[0], cases[2], cases[5], cases[6], cases[7], computed_cases[0], computed_cases[1]}) {
      const Kernel kernel = kernel_of(one.text);
      const BoundSpace space = spaces_for(kernel, machine).front();
      const Point point = point_with(
          space, {{"copy_source", 2}, {"lines", 2}, {"line_tiles", 2}, {"blocks", 1}, {"flat", 0}});
      EXPECT_EQ(expect_as_in_f32(one.text, space, {point}), 1U);
    }
  }
}

// Lines of a block read the same pixels in different steps: LLVM would keep those tiles, and ends the process
// where registers do not suffice. Compiled for the machine on any other.
TEST(ConvAmx, LoadsTilesAnewInEveryUnrolledStep) {
  Machine machine = test_machine(1);
  machine.amx = true;
  machine.target =
      "x86-64-linux-avx-avx2-avx512-avx512_skylake-avx512_cannonlake-avx512_zen4-avx512_sapphirerapids-f16c-"
      "fma-sse41";
  const Kernel kernel = kernel_of(
      "graph g(%x: bf16[1,64,7,7]@c32, %w: bf16[96,64,3,3]) { %v: bf16[1,96,7,7]@c32 = conv(%x, %w) "
      "{strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=1} return %v }");
  const Space& space = space_named("conv_amx");
  for (const auto& [lines, half] : {std::pair(4, 1), {3, 1}, {2, 0}, {3, 0}}) {
    for (const std::int64_t stream_ahead : {0, 1}) {
      const Point point = point_with(space, kernel, machine,
                                     {{"flat", 0},
                                      {"half", half},
                                      {"blocks", 1},
                                      {"lines", lines},
                                      {"overlap", 0},
                                      {"stream_ahead", stream_ahead},
                                      {"unroll_steps", 72}});
      EXPECT_FALSE(
          compile_to_object(kernel, bound(space, kernel, machine).at(point), machine.target).empty());
    }
  }
}

// Of filters that do not stay in the L2 each block meets all images.
TEST(ConvAmx, TakesAllImagesInABlock) {
  const char* const text =
      R"(graph g(%x: bf16[3,32,7,7]@c32, %w: bf16[128,32,3,3], %wb: f32[128]) { %v: bf16[3,128,7,7]@c32 = conv(%x, %w, %wb) {strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=1} return %v })";
  const Kernel kernel = kernel_of(text);
  for (const int threads : {1, 2}) {
    Machine machine = detect_machine(threads);
    if (!machine.amx) GTEST_SKIP() << "the processor has no AMX, or the system does not let programs use it";
    machine.l2_bytes = 64 << 10;
    const BoundSpace space = spaces_for(kernel, machine).front();
    std::vector<Point> points;
    for (const auto& [flat, half] : {std::pair(1, 1), {0, 0}, {0, 1}}) {
      points.push_back(point_with(space, {{"flat", flat}, {"half", half}, {"lines_outer", 0}}));
      const std::string schedule = space.at(points.back()).schedule.to_string();
      EXPECT_THAT(schedule, testing::ContainsRegex("d4, (b|task1)")) << schedule;
    }
    EXPECT_EQ(expect_as_in_f32(text, space, points), points.size());
  }
}

// An image of f32 is rounded while it is copied.
TEST(ConvAmx, RoundImages) {
  const Kernel kernel = kernel_of(
      R"(graph g(%x: f32[1,3,13,21], %w: bf16[40,3,3,3], %wb: f32[40]) { %i: bf16[1,3,13,21] = cast(%x) {to="bf16"} %v: bf16[1,40,7,11]@c32 = conv(%i, %w, %wb) {strides=[2,2], pads=[1,1,1,1], dilations=[1,1], groups=1} %o: bf16[1,40,7,11]@c32 = relu(%v) return %o })");
  Machine machine = detect_machine(2);
  const BoundSpace space = spaces_for(kernel, machine).front();
  EXPECT_EQ(space.name, machine.amx             ? "conv_lines_amx"
                        : machine.bf16_products ? "conv_blocked"
                                                : "contraction");
  check_candidate(kernel, space.at(space.heuristic), {}, 0x1p-7);
}

TEST(ConvAmx, RefuseWithAReason) {
  Machine machine = detect_machine(1);
  machine.amx = true;
  const auto refusal = [&](const char* space, const char* text) {
    const std::vector<Space>& table = space_table();
    const auto found =
        std::find_if(table.begin(), table.end(), [&](const Space& s) { return s.name == space; });
    return found->bind(kernel_of(text), machine).refusal;
  };
  const char* attributes = "{strides=[1,1], pads=[0,0,0,0], dilations=[1,1], groups=1} return %v }";
  const auto conv = [&](const std::string& x, const std::string& w, const std::string& v) {
    return fmt::format("graph g(%x: {}, %w: {}) {{ %v: {} = conv(%x, %w) {}", x, w, v, attributes);
  };
  const std::string narrow = conv("bf16[1,32,4,4]@c16", "bf16[16,32,1,1]", "bf16[1,16,4,4]@c16");
  EXPECT_EQ(refusal("conv_amx", narrow.c_str()), "its blocks have 16 channels, a tile's row 32");
  const std::string f32 = conv("f32[1,32,4,4]@c32", "f32[32,32,1,1]", "f32[1,32,4,4]@c32");
  EXPECT_EQ(refusal("conv_amx", f32.c_str()), "it is f32, tiles multiply bf16");
  const std::string image = conv("bf16[1,3,4,4]", "bf16[32,3,1,1]", "bf16[1,32,4,4]@c32");
  EXPECT_EQ(refusal("conv_amx", image.c_str()), "its input has 3 channels, less than a block of 32");
  const std::string blocks = conv("bf16[1,32,4,4]@c32", "bf16[32,32,1,1]", "bf16[1,32,4,4]@c32");
  EXPECT_EQ(refusal("conv_lines_amx", blocks.c_str()), "its input is channel-blocked");
  const std::string wide = conv("bf16[1,3,12,12]", "bf16[32,3,12,12]", "bf16[1,32,1,1]@c32");
  EXPECT_EQ(refusal("conv_lines_amx", wide.c_str()),
            "a line of its window has 12 x 4 channels, no multiple of a tile's row of 32");
  machine.amx = false;
  EXPECT_THAT(refusal("conv_amx", blocks.c_str()), testing::HasSubstr("no AMX"));
}

}  // namespace
}  // namespace sylvite::space_conv_amx_test

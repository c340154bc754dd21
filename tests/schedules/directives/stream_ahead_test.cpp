#include "schedules/directives/stream_ahead.h"

#include <gmock/gmock.h>

#include "lowering/plan/open_kernel.h"
#include "schedules/compile.h"
#include "tests/schedules/fixed_machines.h"
#include "tests/support/bound_space.h"
#include "tests/support/lowered_text.h"
#include "tests/support/run_kernel.h"

namespace sylvite::stream_ahead_test {
namespace {

const char* const dense =
    "graph g(%a: f32[16,32], %w: f32[32,64]) { %v: f32[16,64] = matmul(%a, %w) return %v }";

std::string lowered(const Kernel& kernel, const std::string& space_name, const NamedValues& replaced) {
  const Machine machine = test_machine(1);
  const Space& space = space_named(space_name);
  const Point point = point_with(space, kernel, machine, replaced);
  return lowered_text(kernel, bound(space, kernel, machine).at(point), machine.target);
}

std::string lowered(const NamedValues& replaced) {
  return lowered(kernel_of(dense), "matmul_panels", replaced);
}

TEST(StreamAhead, SpreadsOneSlabOverTheTilesThatUseTheLast) {
  // Two panels are 2 * 32 * 16 floats; two tiles of rows make 64 steps, so a step is 16 floats further.
  const std::string text = lowered({{"rows", 8}, {"panels", 2}, {"row_tiles", 2}, {"stream_ahead", 1}});
  EXPECT_THAT(text, testing::ContainsRegex("llvm.prefetch.p0\\(.*in1.*\\+ 1024.*, 0, 2, 1\\)")) << text;
}

TEST(StreamAhead, FetchesEveryLineInOneTile) {
  const std::string text = lowered({{"rows", 8}, {"panels", 2}, {"row_tiles", 1}, {"stream_ahead", 2}});
  EXPECT_EQ(count_in(text, "llvm.prefetch"), 2) << text;  // two panels: two lines in a step
}

TEST(StreamAhead, IsNotThereUnlessAskedFor) {
  EXPECT_THAT(lowered({}), testing::Not(testing::HasSubstr("prefetch")));
}

TEST(StreamAhead, SpreadsOneSlabOverAsManyTilesAsARunHas) {
  const auto image = [](int height, int width) {
    return kernel_of(fmt::format(
        "graph g(%x: f32[1,32,{0},{1}]@c16, %w: f32[32,32,3,3]) {{ %v: f32[1,32,{0},{1}]@c16 = "
        "conv(%x, %w) {{dilations=[1, 1], groups=1, pads=[1, 1, 1, 1], strides=[1, 1]}} return %v }}",
        height, width));
  };
  const std::optional<Kernel> open = generalize(image(8, 10), image(12, 14));
  ASSERT_TRUE(open);
  const std::string text =
      lowered(*open, "conv_winograd", {{"blocks", 2}, {"columns", 2}, {"lines", 2}, {"stream_ahead", 1}});
  EXPECT_EQ(count_in(text, "llvm.prefetch"), 2) << text;
  // The part that a pass has is a power of two of all.
  EXPECT_THAT(text, testing::HasSubstr("count_leading_zeros")) << text;
}

TEST(StreamAhead, GoesThroughTheLoopsOfAConvolution) {
  const Kernel kernel = kernel_of(
      "graph g(%x: f32[1,64,4,8]@c16, %w: f32[96,64,1,1]) { %v: f32[1,96,4,8]@c16 = conv(%x, %w) "
      "{dilations=[1, "
      "1], groups=1, pads=[0, 0, 0, 0], strides=[1, 1]} return %v }");
  const std::string text =
      lowered(kernel, "conv_blocked", {{"pixels", 8}, {"lines", 1}, {"blocks", 2}, {"stream_ahead", 1}});
  // The next two blocks are 2 * 64 * 16 floats away; 4 lines share them.
  EXPECT_THAT(text, testing::ContainsRegex("llvm.prefetch.p0\\(.*\\+ 2048.*, 0, 2, 1\\)")) << text;
}

TEST(StreamAhead, FetchesTheNextFiltersOfWinogradsPlaces) {
  const Kernel kernel = kernel_of(
      "graph g(%x: f32[1,32,8,8]@c16, %w: f32[32,32,3,3]) { %v: f32[1,32,8,8]@c16 = conv(%x, %w) "
      "{dilations=[1, "
      "1], groups=1, pads=[1, 1, 1, 1], strides=[1, 1]} return %v }");
  const std::string text = lowered(kernel, "conv_winograd", {{"blocks", 2}, {"stream_ahead", 1}});
  EXPECT_EQ(count_in(text, "llvm.prefetch"), 2) << text;  // the places of two blocks lie apart
  EXPECT_EQ(count_in(lowered(kernel, "conv_winograd", {{"stream_ahead", 0}}), "llvm.prefetch"), 0);
}

TEST(StreamAhead, FetchesIntoTheSecondCache) {
  const Kernel kernel = kernel_of(dense);
  const Machine machine = test_machine(1);
  const Space& space = space_named("matmul_panels");
  const Candidate candidate =
      bound(space, kernel, machine).at(point_with(space, kernel, machine, {{"stream_ahead", 1}}));
  const std::string object = compile_to_object(kernel, candidate, machine.target);
  bool found = false;  // prefetcht1 is 0f 18 /2, with an operand in memory
  for (std::size_t i = 0; i + 2 < object.size(); ++i) {
    const auto operand = static_cast<unsigned char>(object[i + 2]);
    found =
        found || (object[i] == 0x0f && object[i + 1] == 0x18 && (operand >> 3 & 7) == 2 && operand < 0xc0);
  }
  EXPECT_TRUE(found);
}

TEST(StreamAhead, IsAboutALoopOfItsOwnStage) {
  Algorithm algorithm = build_algorithm(kernel_of(dense), Form{"matmul_panels", {}});
  EXPECT_NO_THROW(Schedule::parse("v0_fold.update(0).stream_ahead(r0, in1, 1);").apply(algorithm));
  // The pure definition has no reduction.
  EXPECT_THROW(Schedule::parse("v0_fold.stream_ahead(r0, in1, 1);").apply(algorithm), CompileError);
  const Schedule of_update = Schedule::parse("v0_fold.update(0).stream_ahead(r0, in1, 1);");
  Halide::Pipeline pipeline(algorithm.outputs);
  EXPECT_NO_THROW(add_own_passes(of_update, algorithm, detect_machine(1).target, pipeline));
}

TEST(StreamAhead, NamesWhatItDoesNotKnow) {
  const auto message = [](const std::string& line) {
    const Kernel kernel = kernel_of(dense);
    Algorithm algorithm = build_algorithm(kernel, Form{"matmul_panels", {}});
    try {
      Schedule::parse(line).apply(algorithm);
    } catch (const CompileError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(message("v0.stream_ahead(d9, in1, 1);"), testing::HasSubstr("no loop 'd9'"));
  EXPECT_THAT(message("v0.stream_ahead(d1, w, 1);"), testing::HasSubstr("no input is called 'w'"));
  EXPECT_THAT(message("v0.stream_ahead(d1, in1, 0);"), testing::HasSubstr("is not ahead"));
}

}  // namespace
}  // namespace sylvite::stream_ahead_test

#include "schedules/stream_ahead.h"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include "tests/autotune/temporary_folder.h"
#include "tests/schedules/candidate_runner.h"
#include "tests/support/run_kernel.h"

namespace sylvite {
namespace {

const char* const dense =
    "graph g(%a: f32[16,32], %w: f32[32,64]) { %v: f32[16,64] = matmul(%a, %w) return %v }";

/// Halide's own text of the lowered candidate.
std::string lowered(const Point& replaced) {
  const Kernel kernel = kernel_of(dense);
  const Machine machine = test::test_machine(1);
  const Space& space = test::space_named("matmul_panels");
  const Candidate candidate = space.at(kernel, machine, test::point_with(space, kernel, machine, replaced));
  Algorithm algorithm = build_algorithm(kernel, candidate.form);
  candidate.schedule.apply(algorithm);
  Halide::Pipeline pipeline(algorithm.outputs);
  add_stream_ahead(candidate.schedule, algorithm, pipeline);
  const TemporaryFolder folder;
  const std::string path = folder.file("stmt.txt");
  pipeline.compile_to_lowered_stmt(path, {algorithm.inputs.begin(), algorithm.inputs.end()}, Halide::Text);
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(StreamAhead, SpreadsOneSlabOverTheTilesThatUseTheLast) {
  // Two panels are 2 * 32 * 16 floats; two tiles of rows make 64 steps, so a step is 16 floats further.
  const std::string text = lowered({{"rows", 8}, {"panels", 2}, {"row_tiles", 2}, {"stream_ahead", 1}});
  EXPECT_THAT(text, testing::ContainsRegex("prefetch\\(in1, .*\\+ 1024, 1, 1\\)")) << text;
}

TEST(StreamAhead, FetchesEveryLineInOneTile) {
  const std::string text = lowered({{"rows", 8}, {"panels", 2}, {"row_tiles", 1}, {"stream_ahead", 2}});
  std::size_t prefetches = 0;
  for (std::size_t at = text.find("prefetch(in1"); at != std::string::npos;
       at = text.find("prefetch(in1", at + 1))
    ++prefetches;
  EXPECT_EQ(prefetches, 2U) << text;  // two panels: two lines in a step
}

TEST(StreamAhead, IsNotThereUnlessAskedFor) {
  EXPECT_THAT(lowered({}), testing::Not(testing::HasSubstr("prefetch")));
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
}  // namespace sylvite

#include "schedules/directives/merge_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/files.h"
#include "tests/support/lowered_text.h"
#include "tests/support/temporary_folder.h"

namespace sylvite::merge_checks_test {
namespace {

/// out(x, y) = in(x, y) + y
struct Sample {
  Halide::ImageParam in{Halide::Float(32), 2, "in"};
  Halide::Pipeline pipeline;

  explicit Sample(bool is_merged) {
    Halide::Func out("out");
    Halide::Var x("x"), y("y");
    out(x, y) = in(x, y) + Halide::cast<float>(y);
    pipeline = Halide::Pipeline(out);
    if (is_merged) pipeline.add_custom_lowering_pass(new MergeChecks());  // which the pipeline owns
  }

  std::string text() {
    const TemporaryFolder folder;
    const std::string path = folder.file("stmt.txt");
    const Halide::Target target = Halide::get_host_target()
                                      .with_feature(Halide::Target::NoRuntime)
                                      .with_feature(Halide::Target::NoBoundsQuery);
    pipeline.compile_to_lowered_stmt(path, {in}, Halide::Text, target);
    return read_file(path);
  }
};

TEST(MergeChecks, ChecksPointersAndThenAllElseAtOnce) {
  const std::string before = Sample(false).text(), after = Sample(true).text();
  EXPECT_GT(count_in(before, "assert("), 10);
  EXPECT_EQ(count_in(after, "assert("), 2);
  const std::size_t pointers = after.find("assert("), fields = after.find("_halide_buffer_get_host"),
                    rest = after.rfind("assert("), work = after.find("produce out");
  EXPECT_LT(pointers, fields);
  EXPECT_LT(fields, rest);
  EXPECT_LT(rest, work);
  for (const std::string condition :
       {"in.type ==", "in.dimensions ==", "in.min.1 <=", "in.stride.0 ==", "device_dirty"})
    EXPECT_THAT(after.substr(rest, work - rest), testing::HasSubstr(condition));
}

TEST(MergeChecks, RefusesWhatEachCheckRefuses) {
  Sample sample(true);
  Halide::Buffer<float> in(16, 9), out(16, 9);
  in.fill(1.0F);
  sample.in.set(in);
  sample.pipeline.realize(out);
  EXPECT_EQ(out(15, 8), 9.0F);
  Halide::Buffer<float> larger(17, 9), turned = Halide::Buffer<float>(9, 16).transposed(0, 1);
  EXPECT_THROW(sample.pipeline.realize(larger), Halide::Error);
  EXPECT_THROW(sample.pipeline.realize(turned), Halide::Error);
}

}  // namespace
}  // namespace sylvite::merge_checks_test

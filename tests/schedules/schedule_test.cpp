#include "schedules/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "lowering/algorithms/algorithm.h"

namespace sylvite::schedule_test {
namespace {

TEST(Schedule, TextRoundTrips) {
  const std::string text =
      "Func v3_part = v3_fold.update(0).rfactor(r0i, u);\n"
      "v3_fold.update(0).split(r0, r0o, r0i, 64, TailStrategy::GuardWithIf).reorder(d0, r0i);\n"
      "v3.vectorize(d0, 16).parallel(d1);\n"
      "v3_fold.compute_at(v3, d1).store_in(MemoryType::Register);\n";
  const Schedule schedule = Schedule::parse(text);
  EXPECT_EQ(schedule.decisions.size(), 7U);
  EXPECT_EQ(schedule.to_string(), text);
  EXPECT_EQ(Schedule::parse(schedule.to_string()), schedule);
}

TEST(Schedule, ReadsCommentsAndBlankLines) {
  const Schedule schedule = Schedule::parse("// by hand\n\n  v1.unroll( d0 ,4 ) ; // four\n");
  ASSERT_EQ(schedule.decisions.size(), 1U);
  EXPECT_EQ(schedule.to_string(), "v1.unroll(d0, 4);\n");
}

TEST(Schedule, NamesTheLineItCannotRead) {
  const auto message = [](const std::string& text) {
    try {
      (void)Schedule::parse(text);
    } catch (const ModelError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message("v1.unroll(d0, 4)"), "schedule line 1: expected ';': v1.unroll(d0, 4)");
  EXPECT_EQ(message("v1.unroll(d0);\nv1;"), "schedule line 2: expected stage.directive(...);: v1;");
  EXPECT_EQ(message("v1.update(x).unroll(d0);"),
            "schedule line 1: update takes one number: v1.update(x).unroll(d0);");
  EXPECT_EQ(message("v1.update(0).rfactor(r0, u);"),
            "schedule line 1: rfactor needs a name: Func part = ...: v1.update(0).rfactor(r0, u);");
}

/// v0(d0, d1) = d0 + d1; v1_fold(d1) += v0(r0, d1); v1(d1) = v1_fold(d1).
Algorithm row_sums() {
  Algorithm algorithm;
  const Halide::Var d0("d0");
  const Halide::Var d1("d1");
  Halide::Func v0("v0");
  Halide::Func fold("v1_fold");
  Halide::Func v1("v1");
  v0(d0, d1) = Halide::cast<float>(d0 + d1);
  const Halide::RDom r(Halide::Internal::ReductionDomain({{"r0", 0, 100}}));
  fold(d1) = 0.0F;
  fold(d1) += v0(r[0], d1);
  v1(d1) = fold(d1);
  algorithm.stages = {{"v0", v0}, {"v1_fold", fold}, {"v1", v1}};
  algorithm.outputs = {v1};
  return algorithm;
}

TEST(Schedule, AppliesDirectivesByName) {
  Algorithm algorithm = row_sums();
  Schedule::parse(
      "v1_fold.compute_at(v1, d1);\n"
      "v1_fold.update(0).split(r0, r0o, r0i, 16, TailStrategy::GuardWithIf);\n"
      "Func part = v1_fold.update(0).rfactor(r0i, u);\n"
      "part.compute_at(v1, d1).store_in(MemoryType::Register).bound_extent(u, 16).vectorize(u);\n"
      "part.update(0).reorder(u, r0o).vectorize(u);\n"
      "v1_fold.update(0).atomic().vectorize(r0i);\n")
      .apply(algorithm);
  const Halide::Buffer<float> out = Halide::Pipeline(algorithm.outputs).realize({3});
  EXPECT_EQ(out(0), 4950);
  EXPECT_EQ(out(2), 5150);
}

TEST(Schedule, NamesTheDecisionThatFails) {
  const auto message = [](const std::string& text) {
    Algorithm algorithm = row_sums();
    try {
      Schedule::parse(text).apply(algorithm);
    } catch (const CompileError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message("v9.vectorize(d0, 8);"), "v9.vectorize(d0, 8);: no stage is called 'v9'");
  EXPECT_EQ(message("v0.vectorize(d7, 8);"), "v0.vectorize(d7, 8);: the stage has no loop 'd7'");
  EXPECT_EQ(message("v0.polish(d0);"), "v0.polish(d0);: no directive is called 'polish'");
  EXPECT_EQ(message("v0.update(0).unroll(d0);"), "v0.update(0).unroll(d0);: stage 'v0' has 0 updates");
  EXPECT_EQ(message("v0.compute_at(v8, d0);"), "v0.compute_at(v8, d0);: no stage is called 'v8'");
  EXPECT_THAT(message("v1_fold.update(0).parallel(r0);"), testing::HasSubstr("race"));
}

}  // namespace
}  // namespace sylvite::schedule_test

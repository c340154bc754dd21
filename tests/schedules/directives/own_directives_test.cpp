#include "schedules/directives/own_directives.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "tests/schedules/fixed_machines.h"
#include "tests/support/lowered_text.h"
#include "tests/support/run_kernel.h"

namespace sylvite::own_directives_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const char* const product =
    "graph g(%a: bf16[64,128], %w: bf16[128,64]) { %v: bf16[64,64] = matmul(%a, %w) return %v }";

const char* const tiles =
    "v0_out.split(d0, p, v, 16, TailStrategy::GuardWithIf);\n"
    "v0_out.split(p, g, q, 2, TailStrategy::ShiftInwards);\n"
    "v0_out.split(d1, t, i, 16, TailStrategy::ShiftInwards);\n"
    "v0_out.reorder(v, q, i, t, g).vectorize(v);\n"
    "v0_fold.compute_at(v0_out, t).store_in(MemoryType::Stack);\n"
    "v0_fold.bound_extent(v, 16).bound_extent(p, 2).bound_extent(d1, 16);\n";

/// With the statements of own directives behind those that make blocks for AMX.
std::string lowered(const std::string& own) {
  const Candidate candidate{Form{"matmul_panels", {}}, Schedule::parse(tiles + own)};
  return lowered_text(kernel_of(product), candidate, fixed_machine("amx").target);
}

std::string refusal(const std::string& line) {
  Algorithm algorithm = build_algorithm(kernel_of(product), Form{"matmul_panels", {}});
  try {
    Schedule::parse(line).apply(algorithm);
  } catch (const CompileError& error) {
    return error.what();
  }
  return "";
}

TEST(OwnDirectives, HaveNamesOfTheirOwnAndATextForm) {
  std::set<std::string_view> names;
  for (const OwnDirective& row : own_directives()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_THAT(row.help, StartsWith(fmt::format("{}(", row.name)));
    const std::string_view form = row.help.substr(0, row.help.find(')'));
    const bool is_bare = form.ends_with('(');
    EXPECT_EQ(std::ranges::count(form, ',') + (is_bare ? 0 : 1), row.arguments) << row.help;
  }
}

TEST(OwnDirectives, RunInTheOrderOfTheirRows) {
  const std::string text = lowered(
      "v0_fold.update(0).amx_tiles();\nv0_out.stream_ahead(t, in1, 1);\nv0_fold.overlap_epilogue();\n"
      "v0_fold.unroll_steps(4);\n");
  EXPECT_EQ(count_in(text, "tile_matmul"), 8);  // two tiles, four steps
  EXPECT_THAT(text, HasSubstr("prefetch"));
  EXPECT_EQ(text, lowered("v0_fold.unroll_steps(4);\nv0_fold.overlap_epilogue();\n"
                          "v0_out.stream_ahead(t, in1, 1);\nv0_fold.update(0).amx_tiles();\n"));
}

std::size_t passes_of(const std::string& schedule) {
  Algorithm algorithm = build_algorithm(kernel_of(product), Form{"matmul_panels", {}});
  const Schedule parsed = Schedule::parse(schedule);
  parsed.apply(algorithm);
  Halide::Pipeline pipeline(algorithm.outputs);
  add_own_passes(parsed, algorithm, fixed_machine("amx").target, pipeline);
  return pipeline.custom_lowering_passes().size();
}

TEST(OwnDirectives, OfTheKernelAreOnePass) {
  EXPECT_EQ(passes_of("v0_out.even_odd_lanes();\nv0_fold.even_odd_lanes();\n"), passes_of("") + 1);
}

TEST(OwnDirectives, KeepToTheirScope) {
  EXPECT_THAT(refusal("v0_fold.update(0).overlap_epilogue();"), HasSubstr("acts on the whole stage"));
  EXPECT_THAT(refusal("v0_fold.update(0).even_odd_lanes();"), HasSubstr("acts on the whole stage"));
  EXPECT_THAT(refusal("v0_fold.amx_tiles();"), HasSubstr("write .update(0)"));
  EXPECT_THAT(refusal("v0_fold.unroll_steps();"), HasSubstr("expected unroll_steps(copies)"));
  EXPECT_THAT(refusal("v0_fold.unroll_steps(x);"), HasSubstr("'x' is not a number"));
}

// Directives of Halide's may be about a copy of an input; ours find their stage in the algorithm.
TEST(OwnDirectives, AreNotAboutInputs) {
  EXPECT_THAT(refusal("in0.overlap_epilogue();"), HasSubstr("'in0' is an input; overlap_epilogue acts on"));
}

}  // namespace
}  // namespace sylvite::own_directives_test

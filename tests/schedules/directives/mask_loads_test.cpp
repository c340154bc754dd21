#include "schedules/directives/mask_loads.h"

#include <gmock/gmock.h>

#include <string>

#include "tests/schedules/fixed_machines.h"
#include "tests/support/lowered_text.h"
#include "tests/support/run_kernel.h"

namespace sylvite::mask_loads_test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

const char* const masked[] = {
    "graph g(%x: f32[1,8,5,20], %w: f32[8,2,3,3]) { %v: f32[1,8,5,20] = conv(%x, %w) {dilations=[1,1], "
    "groups=4, pads=[1,1,1,1], strides=[1,1]} return %v }",
    "graph g(%x: f32[1,3,5,37]) { %v: f32[1,3,5,37] = avg_pool(%x) {count_include_pad=0, dilations=[1,1], "
    "kernel=[1,3], pads=[0,2,0,0], strides=[1,1]} return %v }",
    "graph g(%x: i32[3,20]) { %v: i32[3,41] = pad(%x) {low=[0,9], high=[0,12], interior=[], "
    "mode=\"constant\"} return "
    "%v }",
    "graph g(%x: f32[3,20]) { %v: f32[3,41] = pad(%x) {low=[0,9], high=[0,12], interior=[], mode=\"edge\"} "
    "return %v }",
    "graph g(%x: f32[3,20]) { %v: f32[3,41] = pad(%x) {low=[0,9], high=[0,12], interior=[], "
    "mode=\"reflect\"} return %v }"};  // of what lies inside
const char* const others[] = {
    // AVX2 masks no bytes.
    "graph g(%x: u8[3,70]) { %v: u8[3,91] = pad(%x) {low=[0,9], high=[0,12], interior=[], mode=\"constant\"} "
    "return %v "
    "}"};

std::string text_of(const std::string& graph, const Machine& machine) {
  const Kernel kernel = kernel_of(graph);
  return lowered_text(kernel, default_candidate(kernel, machine), machine.target);
}

TEST(MaskLoads, LoadsAsTheyLieWhatASelectKeepsOrDrops) {
  for (const char* const graph : masked) {
    EXPECT_THAT(text_of(graph, fixed_machine("avx512")), HasSubstr(" if ")) << graph;
    EXPECT_THAT(text_of(graph, fixed_machine("avx2")), HasSubstr(" if ")) << graph;
    check_kernel(graph);
    const Kernel kernel = kernel_of(graph);
    const Machine narrow = fixed_machine("avx2");
    expect_agrees(kernel, default_candidate(kernel, narrow), 2e-6, Halide::Target(narrow.target));
  }
}

// Lines may be shorter than a vector, which is then clamped to both sides.
TEST(MaskLoads, LoadsLinesOfAnyLength) {
  const Kernel kernel = parse_kernel(
      "graph kernel(%in0: f32[s0,8,s1,s2], %in1: f32[8,2,3,3]) where {s0: 1..@1, s1: 4..@14, s2: 4..@14} {\n"
      "  %v0: f32[s0,8,s1,s2] = conv(%in0, %in1) {dilations=[1,1], groups=4, pads=[1,1,1,1], strides=[1,1]}\n"
      "  return %v0\n}\nweights: in1");
  const Machine machine = fixed_machine("avx512");
  const Candidate candidate = default_candidate(kernel, machine);
  EXPECT_THAT(candidate.schedule.to_string(), HasSubstr("TailStrategy::Predicate)"));
  EXPECT_THAT(lowered_text(kernel, candidate, machine.target), ContainsRegex("in0\\[[^\n]*\\] if "));
}

TEST(MaskLoads, LeavesOtherLoadsAlone) {
  for (const char* const graph : others) {
    EXPECT_THAT(text_of(graph, fixed_machine("avx512")), Not(HasSubstr(" if "))) << graph;
    check_kernel(graph);
  }
}

}  // namespace
}  // namespace sylvite::mask_loads_test

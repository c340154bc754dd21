// Attention by chunks of key positions beside the interpreter: masks that hide chunks, odd extents, every point.

#include <gmock/gmock.h>

#include "tests/support/bound_space.h"
#include "tests/support/lowered_text.h"
#include "tests/support/run_kernel.h"

namespace sylvite::space_attention_chunks_test {
namespace {

using testing::HasSubstr;

struct Case {
  const char* leading;  ///< dims of the batch
  int rows, positions, depth, columns;
  const char* mask = "";  ///< its type and shape, or none
  const char* attributes = "scale=0.0, causal=0, softcap=0.0";
  const char* element = "f32";
};

const Case cases[] = {
    {"1,4,", 3, 512, 64, 64, "bool[1,1,1,512]"},
    {"2,2,", 1, 200, 32, 48, "bool[2,1,1,200]"},
    {"3,", 5, 70, 16, 16, "bool[5,70]"},
    {"1,2,", 8, 130, 32, 32, "f32[8,130]", "scale=0.5, causal=0, softcap=4.0"},
    {"2,", 4, 64, 64, 80, "", "scale=0.0, causal=1, softcap=0.0"},
    {"", 2, 100, 32, 32, "bool[2,100]"},
    {"1,3,", 2, 90, 32, 32, "bool[1,1,2,90]", "scale=0.0, causal=0, softcap=0.0", "bf16"},
};

std::string text_of(const Case& c) {
  const std::string mask = c.mask;
  return fmt::format(
      "graph g(%q: {0}[{1}{2},{4}], %k: {0}[{1}{3},{4}], %v: {0}[{1}{3},{5}]{6}) {{\n"
      "%y: {0}[{1}{2},{5}] = attention(%q, %k, %v{7}) {{{8}}} return %y }}",
      c.element, c.leading, c.rows, c.positions, c.depth, c.columns, mask.empty() ? "" : ", %m: " + mask,
      mask.empty() ? "" : ", %m", c.attributes);
}

/// Boolean masks show positions 20 to 60 of every row, and the last; of f32, all but some.
std::vector<Tensor> masked_inputs(const Kernel& kernel) {
  std::vector<Tensor> inputs = random_inputs(kernel, 5);
  if (inputs.size() < 4) return inputs;
  Tensor& mask = inputs[3];
  const std::int64_t positions = mask.dims().back();
  for (std::int64_t i = 0; i < mask.size(); ++i) {
    const std::int64_t at = i % positions;
    const bool seen = (at >= 20 && at < 60) || at == positions - 1;
    if (mask.dtype() == DType::boolean)
      mask.set_int64(i, seen ? 1 : 0);
    else if (at % 3 == 0)
      mask.set_double(i, -std::numeric_limits<double>::infinity());
  }
  return inputs;
}

double tolerance_of(const Case& c) {
  return std::string(c.element) == "f32" ? 1e-5 : 2e-2;
}

TEST(AttentionChunks, Agree) {
  for (const int threads : {1, 2}) {
    const Machine machine = detect_machine(threads);
    for (const Case& c : cases) {
      const Kernel kernel = kernel_of(text_of(c));
      if (std::string(c.element) == "bf16" && !machine.bf16_products) continue;
      check_candidate(kernel, heuristic_candidate(space_named("attention_chunks"), kernel, machine),
                      masked_inputs(kernel), tolerance_of(c));
    }
  }
}

TEST(AttentionChunks, EveryPointAgrees) {
  const Kernel kernel = kernel_of(text_of(cases[1]));
  const Machine machine = detect_machine(2);
  const BoundSpace space = bound(space_named("attention_chunks"), kernel, machine);
  for (const Parameter& parameter : space.parameters)
    for (const std::int64_t value : parameter.values)
      check_candidate(kernel, space.at(point_with(space, {{parameter.name, value}})), masked_inputs(kernel),
                      1e-5);
}

/// As a softmax of nothing is.
TEST(AttentionChunks, RowsThatSeeNothingAreNan) {
  const Kernel kernel = kernel_of(text_of(cases[5]));
  std::vector<Tensor> inputs = masked_inputs(kernel);
  for (std::int64_t i = 0; i < 100; ++i) inputs[3].set_int64(i, 0);
  EXPECT_TRUE(std::isnan(interpret(kernel.body, inputs).at(0).as_double(0)));
  check_candidate(kernel, heuristic_candidate(space_named("attention_chunks"), kernel, detect_machine(1)),
                  inputs, 1e-5);
}

TEST(AttentionChunks, OutputsMayBeTransposed) {
  const Kernel kernel = kernel_of(
      "graph g(%q: f32[1,5,3,32], %k: f32[1,5,40,32], %v: f32[1,5,40,32]) {\n"
      "%a: f32[1,5,3,32] = attention(%q, %k, %v) {scale=0.0, causal=0, softcap=0.0}\n"
      "%t: f32[1,3,5,32] = transpose(%a) {perm=[0,2,1,3]} %y: f32[1,3,5,32] = relu(%t) return %y }");
  check_candidate(kernel, heuristic_candidate(space_named("attention_chunks"), kernel, detect_machine(2)), {},
                  1e-5);
}

/// The condition stands around all that an iteration computes, not only around what it stores.
void expect_hidden_chunks_are_skipped(const Kernel& kernel) {
  const Machine machine = detect_machine(1);
  Candidate candidate = heuristic_candidate(space_named("attention_chunks"), kernel, machine);
  const auto condition_is_first = [&] {
    const std::string text = lowered_text(kernel, candidate, machine.target);
    const std::size_t condition = text.find("if (v0_alive");
    EXPECT_NE(condition, std::string::npos);
    return condition < text.find("produce v0_lanes");
  };
  EXPECT_TRUE(condition_is_first());
  std::erase_if(candidate.schedule.decisions,
                [](const Decision& each) { return each.directive == "skip_idle"; });
  EXPECT_FALSE(condition_is_first());
}

TEST(AttentionChunks, HiddenChunksAreSkipped) {
  expect_hidden_chunks_are_skipped(kernel_of(text_of(cases[0])));
  expect_hidden_chunks_are_skipped(kernel_of(text_of(cases[3])));  // by -inf
}

/// Whole chunks of one mask for all heads, by -inf.
TEST(AttentionChunks, AddedMasksHideChunks) {
  const Kernel kernel = kernel_of(text_of({"1,4,", 1, 512, 32, 32, "f32[1,1,1,512]"}));
  std::vector<Tensor> inputs = random_inputs(kernel, 5);
  for (std::int64_t i = 100; i < 512; ++i) inputs[3].set_double(i, -std::numeric_limits<double>::infinity());
  const Candidate candidate = heuristic_candidate(space_named("attention_chunks"), kernel, detect_machine(1));
  check_candidate(kernel, candidate, inputs, 1e-5);
  // What is not read does no harm.
  const Tensor expected = interpret(kernel.body, inputs).at(0);
  for (std::int64_t i = 0; i < inputs[2].size(); ++i)
    if (i / 32 % 512 >= 128) inputs[2].set_double(i, std::numeric_limits<double>::quiet_NaN());
  const Tensor actual = run_candidate(kernel, candidate, inputs).at(0);
  for (std::int64_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(actual.as_double(i), expected.as_double(i), 1e-5) << i;
}

TEST(AttentionChunks, OthersAreRefused) {
  const auto refusal = [](const Case& c) {
    return space_named("attention_chunks").bind(kernel_of(text_of(c)), detect_machine(1)).refusal;
  };
  EXPECT_THAT(refusal({"1,", 9, 64, 32, 32}), HasSubstr("it has 9 rows"));
  EXPECT_THAT(refusal({"1,", 2, 8, 32, 32}), HasSubstr("8 key positions"));
  EXPECT_THAT(refusal({"1,", 2, 64, 40, 32}), HasSubstr("its depth 40"));
}

}  // namespace
}  // namespace sylvite::space_attention_chunks_test

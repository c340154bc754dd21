// A small GPT-2 as exporters write it, whose caches a concat extends, as one model with states: prompts and tokens against
// the whole sequence at once.

#include <gmock/gmock.h>

#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "frontend/graph/interpreter.h"
#include "frontend/onnx/importer.h"
#include "frontend/ops/op_table.h"
#include "lowering/plan/memory_plan.h"
#include "lowering/plan/plan_interpreter.h"
#include "runtime/family.h"
#include "tests/runtime/test_session.h"
#include "tests/support/growing_decoder.h"

namespace sylvite::growing_states_test {
namespace {

using testing::HasSubstr;
using Style = GrowingDecoder::Style;

constexpr std::int64_t tokens = 61;

class GrowingRuns : public testing::TestWithParam<Style> {
 protected:
  GrowingRuns() { decoder_.style = GetParam(); }

  [[nodiscard]] CompileOptions options(const std::string& dims) const {
    CompileOptions options = test_options(folder_.path());
    options.set["import.dims"] = dims;
    return options;
  }
  [[nodiscard]] OpenModel opened(const std::string& dims) const {
    const std::string path = folder_.path() + "/growing.onnx";
    write_file(path, decoder_.model().SerializeAsString());
    CompileOptions with_states = options(dims);
    with_states.set["import.state"] = "usual";
    return open_model(path, make_setup(with_states));
  }
  [[nodiscard]] CompiledModel compiled(const std::string& dims) const {
    const std::string path = folder_.path() + "/growing.onnx";
    write_file(path, decoder_.model().SerializeAsString());
    CompileOptions with_states = options(dims);
    with_states.set["import.state"] = "usual";
    return compile(path, with_states);
  }
  [[nodiscard]] Tensor whole(std::int64_t count) const {
    GrowingDecoder at_once = decoder_;
    at_once.has_past = false;
    const std::string path = folder_.path() + "/whole.onnx";
    write_file(path, at_once.model().SerializeAsString());
    return compile(path, options(fmt::format("batch=1,sequence={}", count))).run(inputs(0, count)).at(0);
  }
  /// Tokens from `first` on, with a mask over all so far.
  [[nodiscard]] static std::vector<Tensor> inputs(std::int64_t first, std::int64_t count) {
    Tensor ids(DType::i64, {1, count});
    Tensor positions(DType::i64, {1, count});
    Tensor mask(DType::i64, {1, first + count});
    for (std::int64_t i = 0; i < count; ++i) {
      ids.set_int64(i, (first + i) * (first + i) % tokens);
      positions.set_int64(i, first + i);
    }
    for (std::int64_t i = 0; i < mask.size(); ++i) mask.set_int64(i, 1);
    if (GetParam() == Style::ranges) return {ids};
    return {ids, positions, mask};
  }
  static void expect_rows(const Tensor& logits, const Tensor& expected, std::int64_t first) {
    for (std::int64_t i = 0; i < logits.size(); ++i)
      ASSERT_NEAR(logits.as_double(i), expected.as_double(first * tokens + i), 1e-3) << first << " " << i;
  }

  TemporaryFolder folder_;
  GrowingDecoder decoder_;
};

TEST_P(GrowingRuns, TokenByTokenIsTheWholeSequence) {
  constexpr std::int64_t count = 512;
  CompiledModel model = compiled("batch=1,sequence=1,past_sequence=1..512");
  const Tensor expected = whole(count);
  for (std::int64_t at = 0; at < count; ++at) expect_rows(model.run(inputs(at, 1)).at(0), expected, at);
  try {
    (void)model.run(inputs(count, 1));
    FAIL() << "there is no room";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("'past_sequence' is 512, and this run adds 1: states have room for 512"));
  }
  model.reset_state();
  expect_rows(model.run(inputs(0, 1)).at(0), expected, 0);
}

TEST_P(GrowingRuns, PromptsOfAnySizeGoOn) {
  constexpr std::int64_t count = 60;
  CompiledModel model = compiled("batch=1,sequence=1..32@1,past_sequence=1..64");
  const Tensor expected = whole(count);
  std::int64_t at = 0;
  for (const std::int64_t step : {17, 1, 1, 1, 5, 1, 17, 1, 16}) {
    expect_rows(model.run(inputs(at, step)).at(0), expected, at);
    at += step;
  }
  EXPECT_EQ(model.state("past_sequence").as_int64(0), count);
  // Back to an earlier length.
  model.set_state("past_sequence", Tensor::scalar_i64(20));
  expect_rows(model.run(inputs(20, 3)).at(0), expected, 20);
  for (const std::int64_t nowhere : {std::int64_t{-1}, std::numeric_limits<std::int64_t>::max()}) {
    model.set_state("past_sequence", Tensor::scalar_i64(nowhere));
    EXPECT_THROW((void)model.run(inputs(20, 3)), InputError) << nowhere;
  }
}

/// As many positions as the model has: at the greatest length nothing is cut off its tables.
TEST_P(GrowingRuns, TheCapacityMayBeThatOfTheTables) {
  constexpr std::int64_t count = 20;
  decoder_.positions = count;
  decoder_.layers = 1;
  CompiledModel model = compiled("batch=1,sequence=1,past_sequence=1..20");
  const Tensor expected = whole(count);
  for (std::int64_t at = 0; at < count; ++at) expect_rows(model.run(inputs(at, 1)).at(0), expected, at);
}

/// 0 bytes of caches are copied, and the reasons say so.
TEST_P(GrowingRuns, CachesAreWrittenWhereTheyLie) {
  const OpenModel model = opened("batch=1,sequence=1,past_sequence=1..512");
  const Imported imported = bind_sizes(model, first_sizes(model.parsed.sizes));
  const Plan& plan = *imported.plan;
  ASSERT_EQ(plan.states.size(), 5U);
  int written = 0;
  for (const Launch& launch : plan.launches) {
    const Kernel& kernel = plan.kernels.at(static_cast<std::size_t>(launch.kernel));
    const BufferId root = root_of(plan, launch.arguments.back());
    const Buffer& buffer = plan.buffers.at(static_cast<std::size_t>(root));
    if (buffer.kind != BufferKind::state || buffer.type.rank() == 0) continue;
    ++written;
    EXPECT_TRUE(writes_in_place(kernel.body.nodes().back().op)) << launch.reason;
    EXPECT_THAT(launch.reason, HasSubstr("replaces elements of state"));
  }
  EXPECT_EQ(written, 4) << plan_text(plan);
}

/// Plans at two sizes by the reference interpreter, over the same states.
TEST_P(GrowingRuns, PlansGoOnFromOneAnother) {
  constexpr std::int64_t count = 12;
  decoder_.layers = 1;
  GrowingDecoder at_once = decoder_;
  at_once.has_past = false;
  ImportOptions fixed;
  fixed.dims = {{"batch", 1}, {"sequence", count}};
  const Graph whole = import_onnx_bytes(at_once.model().SerializeAsString(), "", fixed);
  const Tensor expected = interpret(whole, inputs(0, count)).at(0);
  const OpenModel model = opened("batch=1,sequence=1..8@1,past_sequence=1..16");
  std::vector<Tensor> states;
  std::int64_t at = 0;
  for (const std::int64_t step : {5, 1, 1, 5}) {
    const Imported imported = bind_sizes(model, {step});
    if (states.empty()) states = zero_states(imported.graph);
    std::vector<Tensor> given = inputs(at, step);
    if (given.size() == 3) {
      Tensor wide(DType::i64, {1, 16});
      for (std::int64_t i = 0; i < at + step; ++i) wide.set_int64(i, 1);
      given[2] = wide;
    }
    expect_rows(interpret_plan(*imported.plan, given, states).at(0), expected, at);
    at += step;
  }
}

/// What is behind the tokens so far costs nothing: attention goes by chunks, and skips those that are hidden.
TEST_P(GrowingRuns, AttentionIsOneKernelWithAMask) {
  const OpenModel model = opened("batch=1,sequence=1,past_sequence=1..512");
  const Imported imported = bind_sizes(model, first_sizes(model.parsed.sizes));
  int attentions = 0;
  for (const Kernel& kernel : imported.plan->kernels) {
    if (kernel.kind != KernelClass::attention) continue;
    ++attentions;
    EXPECT_EQ(kernel.body.node(kernel.anchor).inputs.size(), 4U) << kernel.text;
    EXPECT_EQ(default_candidate(kernel, imported.setup->machine).form.name, "attention_chunks");
  }
  EXPECT_GT(attentions, 0);
}

TEST_P(GrowingRuns, InputsOfAnotherLengthAreRefused) {
  if (GetParam() == Style::ranges) GTEST_SKIP() << "no input has the length";
  CompiledModel model = compiled("batch=1,sequence=1,past_sequence=1..64");
  (void)model.run(inputs(0, 1));
  try {
    (void)model.run(inputs(2, 1));
    FAIL() << "the mask has an element too much";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'attention_mask': got i64[1,3], expected i64[1,2]"));
  }
  EXPECT_EQ(model.state("past_sequence").as_int64(0), 1);
}

INSTANTIATE_TEST_SUITE_P(Styles, GrowingRuns, testing::Values(Style::tables, Style::ranges));

}  // namespace
}  // namespace sylvite::growing_states_test

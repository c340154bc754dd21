// Programs with values that stay between runs: against the interpreter, and against the whole sequence at once.

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/files.h"
#include "frontend/ops/op_table.h"
#include "lowering/plan/memory_plan.h"
#include "lowering/plan/plan_interpreter.h"
#include "lowering/plan/plan_verifier.h"
#include "sylvite/graph_text.h"
#include "tests/runtime/test_session.h"
#include "tests/support/sample_states.h"

namespace sylvite::states_test {
namespace {

using testing::HasSubstr;

constexpr const char* counter_text =
    "graph counter(%step: f32[3], %count: f32[3]) {\n"
    "  %next: f32[3] = add(%count, %step)\n"
    "  %twice: f32[3] = add(%next, %next)\n"
    "  return %twice, %next to %count\n}\n";

/// Bytes that a run of the plan copies into states, apart from elements that are replaced where they lie.
std::int64_t copied_bytes(const Plan& plan) {
  std::int64_t bytes = 0;
  for (const Launch& launch : plan.launches) {
    const Kernel& kernel = plan.kernels.at(static_cast<std::size_t>(launch.kernel));
    const Buffer& written = plan.buffers.at(static_cast<std::size_t>(launch.arguments.back()));
    const Buffer& root = plan.buffers.at(static_cast<std::size_t>(root_of(plan, launch.arguments.back())));
    if (root.kind == BufferKind::state && !writes_in_place(kernel.body.nodes().back().op))
      bytes += written.type.byte_size();
  }
  return bytes;
}

std::string reasons(const Plan& plan) {
  std::string text;
  for (const Launch& launch : plan.launches) text += launch.reason + "\n";
  return text;
}

/// Runs program, plan and graph side by side, from zero.
void expect_steps_as_interpreted(const Graph& graph, int steps) {
  const TemporaryFolder folder;
  Built built = build_graph(graph, test_options(folder.path()));
  EXPECT_THAT(built.report.warnings, testing::IsEmpty());
  const Plan& plan = built.program.plan();
  std::vector<Tensor> states = zero_states(graph);
  std::vector<Tensor> plan_states = states;
  for (int step = 0; step < steps; ++step) {
    std::vector<Tensor> inputs;
    inputs.reserve(plan.inputs.size());
    for (const Port& port : plan.inputs)
      inputs.push_back(sample_tensor(port.type.dtype, port.type.dims(), step));
    const std::vector<Tensor> expected = interpret(graph, inputs, states);
    const std::vector<Tensor> planned = interpret_plan(plan, inputs, plan_states);
    const std::vector<Tensor> actual = built.program.run(inputs);
    const std::vector<Tensor> kept = built.program.states();
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expect_near(planned[i], expected[i]);
      expect_near(actual[i], expected[i]);
    }
    for (std::size_t i = 0; i < states.size(); ++i) {
      expect_near(plan_states[i], states[i]);
      expect_near(kept[i], states[i]);
    }
  }
}

TEST(StatesTest, CounterCounts) {
  const Graph graph = parse_graph(counter_text);
  EXPECT_EQ(graph_text(graph), counter_text);
  expect_steps_as_interpreted(graph, 5);
}

TEST(StatesTest, WhatIsReadWithItsNextValueIsCopiedOnce) {
  const Plan plan = lower(parse_graph(counter_text));
  EXPECT_EQ(copied_bytes(plan), 12);
  EXPECT_THAT(reasons(plan), HasSubstr("copies the next value of state 'count'"));
}

/// Values that trade places, stand still, are constants, inputs or reshaped, and one that is also an output.
TEST(StatesTest, StatesMayBeOneAnothers) {
  expect_steps_as_interpreted(
      parse_graph("graph trade(%x: f32[4], %a: f32[4], %b: f32[4], %c: f32[4], "
                  "%d: f32[2,2], %e: f32[4], %f: f32[4]) {\n"
                  "  %k = constant f32[4] {1, 2, 3, 4}\n"
                  "  %s: f32[4] = add(%a, %x)\n"
                  "  %t: f32[4] = mul(%b, %k)\n"
                  "  %r: f32[2,2] = reshape(%s) {shape=[2,2]}\n"
                  "  %y: f32[4] = add(%c, %e)\n"
                  "  return %t, %y, %c, %b to %a, %s to %b, %x to %c, %r to %d, %k to %e, "
                  "%f to %f\n}\n"),
      4);
}

TEST(StatesTest, LstmFedStepByStepIsTheWholeSequence) {
  constexpr std::int64_t size = 24;
  constexpr std::int64_t steps = 20;
  const TemporaryFolder folder;
  const Graph graph = lstm_by_steps(size);
  expect_steps_as_interpreted(graph, 3);
  Built built = build_graph(graph, test_options(folder.path()));
  EXPECT_THAT(reasons(built.program.plan()), HasSubstr("writes state 'h0'"));
  const Tensor x = sample_tensor(DType::f32, {steps, size});
  const Tensor whole = interpret(lstm_at_once(steps, size), {x})[0];
  for (std::int64_t step = 0; step < steps; ++step) {
    Tensor row(DType::f32, {1, size});
    Tensor expected(DType::f32, {1, size});
    for (std::int64_t i = 0; i < size; ++i) {
      row.set_double(i, x.as_double(step * size + i));
      expected.set_double(i, whole.as_double(step * size + i));
    }
    expect_near(built.program.run({row})[0], expected);
  }
}

TEST(StatesTest, CachesAreWrittenWhereTheyLie) {
  const SampleDecoder decoder;
  const Plan plan = lower(decoder.by_tokens());
  EXPECT_EQ(copied_bytes(plan), 0) << plan_text(plan);
  const std::int64_t cache = plan.states[0].type.byte_size();
  for (const Launch& launch : plan.launches) {
    const Buffer& written = plan.buffers.at(static_cast<std::size_t>(launch.arguments.back()));
    if (written.type.byte_size() < cache) continue;
    EXPECT_THAT(launch.reason, HasSubstr("replaces elements of state"));
  }
}

TEST(StatesTest, DecoderByTokensIsTheWholeSequence) {
  const SampleDecoder decoder;
  constexpr std::int64_t count = 512;
  const TemporaryFolder folder;
  Built steps = build_graph(decoder.by_tokens(), test_options(folder.path()));
  EXPECT_THAT(steps.report.warnings, testing::IsEmpty());
  Built whole = build_graph(decoder.at_once(count), test_options(folder.path()));
  Tensor tokens(DType::i64, {count});
  for (std::int64_t i = 0; i < count; ++i) tokens.set_int64(i, i * i % decoder.tokens);
  const Tensor expected = whole.program.run({tokens})[0];
  for (std::int64_t i = 0; i < count; ++i) {
    Tensor token(DType::i64, {1});
    Tensor position(DType::i64, {1});
    token.set_int64(0, tokens.to_int64s()[static_cast<std::size_t>(i)]);
    position.set_int64(0, i);
    const Tensor logits = steps.program.run({token, position})[0];
    for (std::int64_t j = 0; j < decoder.tokens; ++j)
      ASSERT_NEAR(logits.as_double(j), expected.as_double(i * decoder.tokens + j), 1e-3) << i << " " << j;
  }
}

TEST(StatesTest, AScatterWhoseOldValueIsReadIsNoWrite) {
  const Graph graph = parse_graph(
      "graph late(%x: f32[1], %at: i64[1], %past: f32[8]) {\n"
      "  %next: f32[8] = scatter_elements(%past, %at, %x) {axis=0, reduction=\"none\"}\n"
      "  %change: f32[8] = sub(%next, %past)\n"
      "  return %change, %next to %past\n}\n");
  EXPECT_GT(copied_bytes(lower(graph)), 0);
  expect_steps_as_interpreted(graph, 4);
}

TEST(StatesTest, ScattersInARowAreWrittenInPlace) {
  const Graph graph = parse_graph(
      "graph twice(%x: f32[1], %at: i64[1], %rows: f32[2,4], %places: i64[2,1], %past: f32[4,4]) {\n"
      "  %flat: f32[16] = reshape(%past) {shape=[16]}\n"
      "  %one: f32[16] = scatter_elements(%flat, %at, %x) {axis=0, reduction=\"add\"}\n"
      "  %square: f32[4,4] = reshape(%one) {shape=[4,4]}\n"
      "  %next: f32[4,4] = scatter_nd(%square, %places, %rows) {reduction=\"none\"}\n"
      "  %sum: f32[4,1] = reduce_sum(%next) {axes=[1], keepdims=1}\n"
      "  return %sum, %next to %past\n}\n");
  EXPECT_EQ(copied_bytes(lower(graph)), 0);
  expect_steps_as_interpreted(graph, 6);
}

/// As models write a cache where no scatter is to be had; the place may be outside, where nothing is written.
TEST(StatesTest, AnEntryChosenByAConditionIsWrittenInPlace) {
  const Graph graph = parse_graph(
      "graph hot(%x: f32[2,1,3], %at: i64[1], %past: f32[2,4,3]) {\n"
      "  %places: i64[4] = iota() {axis=0, dtype=\"i64\", shape=[4]}\n"
      "  %hot: bool[4] = equal(%places, %at)\n"
      "  %column: bool[1,4,1] = reshape(%hot) {shape=[1,4,1]}\n"
      "  %next: f32[2,4,3] = where(%column, %x, %past)\n"
      "  %sum: f32[2,4,1] = reduce_sum(%next) {axes=[2], keepdims=1}\n"
      "  return %sum, %next to %past\n}\n");
  EXPECT_EQ(copied_bytes(lower(graph)), 0) << reasons(lower(graph));
  expect_steps_as_interpreted(graph, 6);
}

/// Elements of types that kernels convert as they store them.
TEST(StatesTest, NarrowElementsAreWrittenInPlace) {
  for (const char* dtype : {"f16", "bf16", "bool"}) {
    for (const std::string reduction : {"none", "max"}) {
      const Graph graph =
          parse_graph(fmt::format("graph narrow(%x: {0}[2,3], %places: i64[2,1], %past: {0}[4,3]) {{\n"
                                  "  %next: {0}[4,3] = scatter_nd(%past, %places, %x) {{reduction=\"{1}\"}}\n"
                                  "  %wide: f32[4,3] = cast(%next) {{to=\"f32\"}}\n"
                                  "  return %wide, %next to %past\n}}\n",
                                  dtype, reduction));
      EXPECT_EQ(copied_bytes(lower(graph)), 0) << dtype;
      expect_steps_as_interpreted(graph, 5);
    }
  }
}

TEST(StatesTest, ReadsBehindWritesAreFound) {
  Plan plan = lower(parse_graph(counter_text));
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    Buffer& next = plan.buffers[i];
    if (next.kind != BufferKind::arena || next.alias_of >= 0) continue;
    next.alias_of = plan.states[0].buffer;
    next.kind = BufferKind::state;
  }
  EXPECT_THROW(verify(plan), InternalError);
}

class StateFiles : public testing::Test {
 protected:
  CompiledModel compiled(const std::string& text = counter_text) {
    return compile(parse_graph(text), test_options(folder_.path()));
  }
  static Tensor step(double value) {
    Tensor tensor(DType::f32, {3});
    for (int i = 0; i < 3; ++i) tensor.set_double(i, value);
    return tensor;
  }
  [[nodiscard]] std::string refusal(CompiledModel& model, const std::string& path) const {
    try {
      model.load_state(path);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  TemporaryFolder folder_;
  std::string path_ = folder_.path() + "/states";
};

TEST_F(StateFiles, AreSavedLoadedAndReset) {
  CompiledModel model = compiled();
  EXPECT_THAT(model.state_names(), testing::ElementsAre("count"));
  EXPECT_THAT(model.input_names(), testing::ElementsAre("step"));
  EXPECT_THAT(model.output_names(), testing::ElementsAre("twice"));
  (void)model.run({step(2)});
  model.save_state(path_);
  EXPECT_EQ(model.run({step(1)})[0].as_double(2), 6);
  model.load_state(path_);
  EXPECT_EQ(model.state("count").as_double(0), 2);
  CompiledModel other = compiled();
  other.load_state(path_);
  EXPECT_EQ(other.run({step(1)})[0].as_double(2), 6);
  model.reset_state();
  EXPECT_EQ(model.run({step(5)})[0].as_double(1), 10);
  model.set_state("count", step(7));
  EXPECT_EQ(model.run({step(1)})[0].as_double(1), 16);
}

TEST_F(StateFiles, OfOthersAreRefused) {
  CompiledModel model = compiled();
  (void)model.run({step(2)});
  model.save_state(path_);
  std::string other_text = counter_text;
  other_text.replace(other_text.find("add(%next, %next)"), 17, "mul(%next, %next)");
  CompiledModel other = compiled(other_text);
  EXPECT_THAT(refusal(other, path_), HasSubstr("holds the states of another model"));
  std::string bytes = read_file(path_);
  write_file(path_, bytes.substr(0, bytes.size() - 1));
  EXPECT_THAT(refusal(model, path_), HasSubstr("is damaged"));
  bytes.replace(bytes.find("STATES 1"), 8, "STATES 9");
  write_file(path_, bytes);
  EXPECT_THAT(refusal(model, path_), HasSubstr("expected 'SYLVITE STATES 1'"));
  write_file(path_, "text");
  EXPECT_THAT(refusal(model, path_), HasSubstr("holds no states"));
  EXPECT_EQ(model.state("count").as_double(0), 2);
}

TEST_F(StateFiles, BadNamesAndTypesAreOneMessage) {
  CompiledModel model = compiled();
  EXPECT_THROW((void)model.state("coutn"), UsageError);
  EXPECT_THROW(model.set_state("count", Tensor(DType::f32, {4})), InputError);
  EXPECT_THROW((void)compiled("graph g(%x: f32[3], %a: f32[3]) {\n  %y: f32[1] = slice(%x) "
                              "{sizes=[1], starts=[0], steps=[1]}\n  return %y to %a\n}\n"),
               ModelError);
}

}  // namespace
}  // namespace sylvite::states_test

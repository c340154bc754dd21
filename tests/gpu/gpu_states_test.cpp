// Values that stay between runs, in the memory of a GPU: against the interpreter, and against the whole sequence at once.

#include "base/files.h"
#include "runtime/family.h"
#include "sylvite/graph_text.h"
#include "tests/gpu/gpu_test.h"
#include "tests/runtime/test_session.h"
#include "tests/support/growing_decoder.h"
#include "tests/support/sample_states.h"

namespace sylvite::gpu_states_test {
namespace {

class GpuStates : public GpuTest {
 protected:
  [[nodiscard]] CompileOptions options(const char* use_graph = "true") const {
    CompileOptions options = test_options(folder_.path());
    options.set["compile.device"] = "cuda";
    options.set["runtime.cuda_graph"] = use_graph;
    return options;
  }

  /// Runs program and graph side by side, from zero.
  void expect_steps_as_interpreted(const Graph& graph, int steps) {
    for (const char* use_graph : {"false", "true"}) {
      Built built = build_graph(graph, options(use_graph));
      std::vector<Tensor> states = zero_states(graph);
      for (int step = 0; step < steps; ++step) {
        std::vector<Tensor> inputs;
        for (const Port& port : built.program.plan().inputs)
          inputs.push_back(sample_tensor(port.type.dtype, port.type.dims(), step));
        const std::vector<Tensor> expected = interpret(graph, inputs, states);
        const std::vector<Tensor> actual = built.program.run(inputs);
        const std::vector<Tensor> kept = built.program.states();
        ASSERT_EQ(actual.size(), expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i) expect_near(actual[i], expected[i]);
        for (std::size_t i = 0; i < states.size(); ++i) expect_near(kept[i], states[i]);
      }
    }
  }

  TemporaryFolder folder_;
};

TEST_F(GpuStates, CounterCounts) {
  expect_steps_as_interpreted(parse_graph("graph counter(%step: f32[3], %count: f32[3]) {\n"
                                          "  %next: f32[3] = add(%count, %step)\n"
                                          "  %twice: f32[3] = add(%next, %next)\n"
                                          "  return %twice, %next to %count\n}\n"),
                              5);
}

/// Values that trade places, stand still, are constants, inputs or reshaped, and one that is also an output.
TEST_F(GpuStates, MayBeOneAnothers) {
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

TEST_F(GpuStates, ElementsAreReplacedWhereTheyLie) {
  for (const char* dtype : {"f32", "f16", "bf16", "bool"}) {
    expect_steps_as_interpreted(
        parse_graph(fmt::format("graph narrow(%x: {0}[2,3], %places: i64[2,1], %past: {0}[4,3]) {{\n"
                                "  %next: {0}[4,3] = scatter_nd(%past, %places, %x) {{reduction=\"none\"}}\n"
                                "  %wide: f32[4,3] = cast(%next) {{to=\"f32\"}}\n"
                                "  return %wide, %next to %past\n}}\n",
                                dtype)),
        5);
  }
}

TEST_F(GpuStates, CellsKeepWhatTheySaw) {
  expect_steps_as_interpreted(lstm_by_steps(24), 6);
}

TEST_F(GpuStates, DecoderByTokensIsTheWholeSequence) {
  const SampleDecoder decoder;
  constexpr std::int64_t count = 40;
  Built steps = build_graph(decoder.by_tokens(), options());
  Built whole = build_graph(decoder.at_once(count), options());
  Tensor tokens(DType::i64, {count});
  for (std::int64_t i = 0; i < count; ++i) tokens.set_int64(i, i * i % decoder.tokens);
  const Tensor expected = whole.program.run({tokens})[0];
  for (std::int64_t i = 0; i < count; ++i) {
    Tensor token(DType::i64, {1});
    Tensor position(DType::i64, {1});
    token.set_int64(0, tokens.as_int64(i));
    position.set_int64(0, i);
    const Tensor logits = steps.program.run({token, position})[0];
    for (std::int64_t j = 0; j < decoder.tokens; ++j)
      ASSERT_NEAR(logits.as_double(j), expected.as_double(i * decoder.tokens + j), 1e-3) << i << " " << j;
  }
}

/// Prompts of several sizes, one program each, over the same caches.
TEST_F(GpuStates, PromptsOfAnySizeGoOn) {
  constexpr std::int64_t count = 60;
  GrowingDecoder decoder;
  decoder.style = GrowingDecoder::Style::ranges;
  const std::string path = folder_.path() + "/growing.onnx";
  write_file(path, decoder.model().SerializeAsString());
  CompileOptions growing = options();
  growing.set["import.dims"] = "batch=1,sequence=1..32@1,past_sequence=1..64";
  growing.set["import.state"] = "usual";
  CompiledModel model = compile(path, growing);
  decoder.has_past = false;
  write_file(path, decoder.model().SerializeAsString());
  CompileOptions fixed = options();
  fixed.set["import.dims"] = fmt::format("batch=1,sequence={}", count);
  const auto tokens = [&](std::int64_t first, std::int64_t size) {
    Tensor ids(DType::i64, {1, size});
    for (std::int64_t i = 0; i < size; ++i) ids.set_int64(i, (first + i) * (first + i) % decoder.tokens);
    return ids;
  };
  const Tensor expected = compile(path, fixed).run({tokens(0, count)}).at(0);
  std::int64_t at = 0;
  for (const std::int64_t step : {17, 1, 1, 5, 1, 17}) {
    const Tensor logits = model.run({tokens(at, step)}).at(0);
    for (std::int64_t i = 0; i < logits.size(); ++i)
      ASSERT_NEAR(logits.as_double(i), expected.as_double(at * decoder.tokens + i), 2e-3) << at << " " << i;
    at += step;
  }
  EXPECT_EQ(model.state("past_sequence").as_int64(0), at);
}

}  // namespace
}  // namespace sylvite::gpu_states_test

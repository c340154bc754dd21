#include "frontend/graph/loop_builder.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "frontend/graph/evaluation_work.h"
#include "frontend/graph/interpreter.h"
#include "frontend/graph/verifier.h"
#include "frontend/passes/pass_list.h"
#include "sylvite/graph_text.h"
#include "tests/support/sample_loops.h"

namespace sylvite::loop_builder_test {
namespace {

using testing::HasSubstr;

void expect_same(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(actual[i].type(), expected[i].type());
    for (std::int64_t k = 0; k < actual[i].size(); ++k)
      ASSERT_NEAR(actual[i].as_double(k), expected[i].as_double(k), 1e-5) << "output " << i << ", " << k;
  }
}

std::size_t count_loops(const Graph& graph) {
  return static_cast<std::size_t>(
      std::ranges::count(graph.nodes(), Op::loop, [](const Node& node) { return node.op; }));
}

const Node& loop_of(const Graph& graph) {
  return *std::ranges::find(graph.nodes(), Op::loop, [](const Node& node) { return node.op; });
}

TEST(LoopBuilder, ComputesWhatTripsOneByOneCompute) {
  for (LoopSample sample : loop_samples()) {
    const Graph looped = sample_loop(sample);
    verify(looped);
    EXPECT_EQ(count_loops(looped), 1U);
    sample.is_unrolled = true;
    const Graph unrolled = sample_loop(sample);
    EXPECT_EQ(count_loops(unrolled), 0U);
    const std::vector<Tensor> inputs = sample_loop_inputs(looped);
    expect_same(interpret(looped, inputs), interpret(unrolled, inputs));
  }
}

TEST(LoopBuilder, PassesRunOnBodies) {
  const Graph looped = sample_loop({});
  const Graph passed = run_passes(looped);
  const std::vector<Tensor> inputs = sample_loop_inputs(looped);
  expect_same(interpret(passed, inputs), interpret(looped, inputs));
  PassRunner runner;
  FrontendOptions options;
  options.narrow = DType::bf16;
  const Graph narrow = run_passes(looped, options, runner);
  const Graph& body = loop_of(narrow).attributes.graph("body");
  const auto is_narrow = [](const Value& value) { return value.type.dtype == DType::bf16; };
  EXPECT_TRUE(std::ranges::any_of(body.values(), is_narrow));
  EXPECT_EQ(body.type(body.inputs[0]).dtype, DType::bf16) << "its only readers round it";
}

/// Of weights that stay nodes, such as bytes that are widened.
TEST(LoopBuilder, BodiesHoldWhatFollowsFromConstants) {
  Graph graph;
  GraphBuilder builder(graph);
  const Sym state = builder.input("state", DType::f32, {1, 8});
  const Sym x = builder.input("x", DType::f32, {1, 8});
  const Sym weight = cast(builder.constant(Tensor(DType::i8, {8, 8})), DType::f32);
  ASSERT_FALSE(weight.is_constant());
  const LoopSpec spec{.trips = 5, .given = {{state}, {}}};
  const TripValues last = run_loop(builder, spec, [&](const TripValues& given) -> TripValues {
    return {{matmul(given.states[0], weight) + x}, {}};
  });
  builder.output(last.states[0], "y");
  const Graph looped = without_dead_nodes(graph);
  verify(looped);
  EXPECT_EQ(loop_of(looped).inputs.size(), 2U) << "the state and x";
  EXPECT_EQ(loop_of(looped).attributes.graph("body").inputs.size(), 2U);
}

/// A recurrence that multiplies what it picks by number in each trip.
Graph picking_loop(bool is_unrolled) {
  Graph graph;
  GraphBuilder builder(graph);
  builder.set_inside_loop(is_unrolled);
  const Sym x = builder.input("x", DType::f32, {5, 3, 8});
  const Sym h = builder.input("h", DType::f32, {3, 8});
  const Sym bias = builder.input("bias", DType::f32, {8});
  const Sym v = builder.constant(wave({8, 8}, 1), "v");
  const Sym w = builder.constant(wave({8, 8}, 2), "w");
  const LoopSpec spec{.trips = 5, .given = {{h}, {builder.integers({4, 0, 3, 3, 1})}}};
  const TripValues results = run_loop(builder, spec, [&](const TripValues& trip) -> TripValues {
    const Sym now = gather(x, trip.slices[0], 0);
    const Sym column = gather(h, trip.slices[0], 1);
    const Sym turned = reshape(matmul(transpose(reshape(now, {1, 3, 8}), {0, 2, 1}), now), {8, 8});
    const Sym next = apply(Op::tanh, matmul(now, v) + bias + matmul(trip.states[0], w));
    return {{next}, {next, turned, now * 2.0, column}};
  });
  builder.output(results.states[0], "state");
  for (const Sym& slices : results.slices) builder.output(slices, "");
  return without_dead_nodes(graph);
}

TEST(LoopBuilder, ProductsOfSlicesAreComputedAhead) {
  const Graph looped = picking_loop(false);
  verify(looped);
  const auto count = [](const Graph& graph, Op op) {
    return std::ranges::count(graph.nodes(), op, [](const Node& node) { return node.op; });
  };
  const Graph& body = loop_of(looped).attributes.graph("body");
  EXPECT_EQ(count(body, Op::matmul), 1) << graph_text(body);
  EXPECT_EQ(count(body, Op::gather), 0);
  EXPECT_EQ(count(looped, Op::matmul), 2);
  const std::vector<Tensor> inputs = sample_loop_inputs(looped);
  expect_same(interpret(looped, inputs), interpret(picking_loop(true), inputs));
}

TEST(LoopBuilder, HasAText) {
  const Graph looped = sample_loop({.hidden = 1});
  const std::string text = graph_text(looped);
  EXPECT_THAT(text, HasSubstr("loop("));
  const auto no_bytes = [](const TensorType& type, const std::string&) {
    return Tensor(type.dtype, type.dims());
  };
  const Graph read = parse_graph(text, no_bytes);
  verify(read);
  EXPECT_EQ(read.nodes().size(), looped.nodes().size());
  EXPECT_EQ(loop_of(read).attributes.integer("trips"), 5);
}

TEST(LoopBuilder, RoundTripsABody) {
  const std::string text = R"(graph outer(%x: f32[3,2], %s: f32[2]) {
  %v1: f32[2], %v2: f32[3,2] = loop(%s, %x) {body=graph body(%a: f32[2], %b: f32[2]) {
  %v3: f32[2] = add(%a, %b)
  return %v3, %v3
}
, reverse=1, scanned=1, states=1, trips=3}
  return %v1, %v2
}
)";
  const Graph graph = parse_graph(text);
  EXPECT_EQ(graph_text(graph), text);
  Tensor x(DType::f32, {3, 2});
  for (std::int64_t i = 0; i < 6; ++i) x.set_double(i, static_cast<double>(i));
  const std::vector<Tensor> results = interpret(graph, {x, Tensor(DType::f32, {2})});
  EXPECT_EQ(results[0].as_double(0), 0 + 2 + 4);
  EXPECT_EQ(results[1].as_double(0), 0 + 2 + 4);  // the last trip takes and leaves the first slice
  EXPECT_EQ(results[1].as_double(4), 4);
  EXPECT_GT(evaluation_work(graph, graph.nodes()[0]), 3000);
}

TEST(LoopBuilder, RefusesTypesThatDoNotFit) {
  const auto parse = [](const std::string& state, const std::string& scanned, const std::string& counts) {
    return parse_graph("graph outer(%x: " + scanned + ", %s: " + state +
                       ") {\n  %v1: f32[2] = loop(%s, %x) {body=graph body(%a: f32[2], %b: f32[2]) {\n"
                       "  %v3: f32[2] = add(%a, %b)\n  return %v3\n}\n, " +
                       counts + "}\n  return %v1\n}\n");
  };
  const auto expect_refusal = [&](const std::string& state, const std::string& scanned,
                                  const std::string& counts, const std::string& why) {
    try {
      (void)parse(state, scanned, counts);
      ADD_FAILURE() << "no error, expected: " << why;
    } catch (const ModelError& error) {
      EXPECT_THAT(error.what(), HasSubstr(why));
    }
  };
  EXPECT_NO_THROW((void)parse("f32[2]", "f32[3,2]", "scanned=1, states=1, trips=3"));
  expect_refusal("f32[2]", "f32[4,2]", "scanned=1, states=1, trips=3",
                 "input 1 is f32[4,2], expected f32[3,2]");
  expect_refusal("f64[2]", "f32[3,2]", "scanned=1, states=1, trips=3", "input 0 is f64[2]");
  expect_refusal("f32[2]", "f32[3,2]", "scanned=1, states=1, trips=0", "a loop of 0 trips");
  expect_refusal("f32[2]", "f32[3,2]", "scanned=2, states=1, trips=3", "1 states and 2 scanned inputs of 2");
  expect_refusal("f32[2]", "f32[3,2]", "scanned=1, states=1, trips=3, reverse=2", "reverse is 2");
}

TEST(LoopBuilder, UnrollsWhatNeedsNumbers) {
  Graph graph;
  GraphBuilder builder(graph);
  const Sym x = builder.input("x", DType::f32, {3});
  const LoopSpec spec{3, false, {{x}, {builder.iota(DType::i64, {3}, 0)}}};
  const TripValues results = run_loop(builder, spec, [&](const TripValues& trip) -> TripValues {
    if (!trip.slices[0].is_constant()) throw UnsupportedError("the trip must be known");
    return {{trip.states[0] + static_cast<double>(trip.slices[0].constant().as_int64(0))}, {}};
  });
  builder.output(results.states[0], "y");
  EXPECT_EQ(count_loops(graph), 0U);
  EXPECT_EQ(interpret(graph, {Tensor(DType::f32, {3})})[0].as_double(0), 0 + 1 + 2);
}

}  // namespace
}  // namespace sylvite::loop_builder_test

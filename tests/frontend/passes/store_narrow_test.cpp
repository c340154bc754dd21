#include "frontend/passes/store_narrow.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "sylvite/graph_text.h"
#include "tests/frontend/ops/run_op.h"

namespace sylvite::store_narrow_test {
namespace {

TEST(StoreAs, KeepsStates) {
  const Graph graph = parse_graph(
      "graph g(%x: f32[2], %past: f32[2]) {\n  %next: f32[2] = add(%past, %x)\n  return %next to %past\n}\n");
  ASSERT_EQ(graph.states.size(), 1U);
  EXPECT_EQ(store_narrow(graph, DType::bf16).states, graph.states);
}

TEST(StoreAs, KeepsTheInterfaceAndRoundsWhatIsBetween) {
  const Graph graph = parse_graph(R"(graph g(%x: f32[2,3], %i: i64[2]) {
    %w = constant f32[3] {0.1, -2.0, 3.3}
    %t: f32[2,3] = mul(%x, %w)
    %g: f32[2,3] = gather(%t, %i) {axis=0}
    %c: f32[2] = cast(%i) {to="f32"}
    %s: f32[2] = reduce_sum(%g) {axes=[1], keepdims=0}
    %a: f32[2] = add(%s, %c)
    %r: f32[2,1] = reshape(%a) {shape=[2,1]}
    %u = constant f32[1,1] {1.0}
    %y: f32[2,1] = matmul(%r, %u)
    return %y, %i
  })");
  const Graph bf16 = store_narrow(graph, DType::bf16);
  verify(bf16);
  EXPECT_EQ(bf16.type(bf16.inputs[0]).dtype, DType::f32);
  EXPECT_EQ(bf16.type(bf16.outputs[0]).dtype, DType::f32);
  EXPECT_EQ(bf16.type(bf16.outputs[1]).dtype, DType::i64);
  EXPECT_EQ(bf16.output_name(0), graph.output_name(0));
  for (const Value& value : bf16.values()) {
    const bool outside =
        value.name == "x" || value.name == "c" || &value == &bf16.value(bf16.outputs[0]) || value.constant;
    EXPECT_TRUE(outside || value.type.dtype != DType::f32) << value.name;
  }
  const std::vector<Tensor> inputs = {reals({2, 3}, {1, 2, 3, 4, 5, 6}), ints({2}, {1, 0})};
  const Tensor exact = interpret(graph, inputs)[0], rounded = interpret(bf16, inputs)[0];
  for (std::int64_t i = 0; i < exact.size(); ++i)
    EXPECT_NEAR(rounded.as_double(i), exact.as_double(i), 0.02 * std::abs(exact.as_double(i)));
}

/// Per constant of the graph by name: its element type.
std::map<std::string, DType> constants_of(const Graph& graph) {
  std::map<std::string, DType> types;
  for (const Value& value : graph.values())
    if (value.constant) types[value.name] = value.constant->dtype();
  return types;
}

TEST(StoreAs, OnlyWhatIsMultipliedIsRounded) {
  const Graph graph = parse_graph(R"(graph g(%x: f32[1,2,1,3], %y: f32[3,2]) {
    %filter = constant f32[1,2,1,1] {0.1, 0.7}
    %bias = constant f32[1] {0.3}
    %c: f32[1,1,1,3] = conv(%x, %filter, %bias) {strides=[1,1], pads=[0,0,0,0], dilations=[1,1], groups=1}
    %weight = constant f32[3,3] {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}
    %m: f32[1,1,1,3] = matmul(%c, %weight)
    %shift = constant f32[3] {0.1, 0.2, 0.3}
    %s: f32[1,1,1,3] = add(%m, %shift)
    %scale = constant f32[3] {1.1, 1.2, 1.3}
    %n: f32[1,1,1,3] = layer_norm(%s, %scale) {axis=3}
    return %n
  })");
  const Graph bf16 = store_narrow(graph, DType::bf16);
  verify(bf16);
  const std::map<std::string, DType> expected = {{"filter", DType::bf16},
                                                 {"bias", DType::f32},
                                                 {"weight", DType::bf16},
                                                 {"shift", DType::f32},
                                                 {"scale", DType::f32}};
  EXPECT_EQ(constants_of(bf16), expected);
}

TEST(StoreAs, RowsOfTablesAreAddedAsTheyAre) {
  const Graph graph = parse_graph(R"(graph g(%i: i64[2]) {
    %table = constant f32[2,2] {0.1, 0.2, 0.3, 0.4}
    %place = constant f32[2,2] {1.1, 1.2, 1.3, 1.4}
    %rows: f32[2,2] = gather(%table, %i) {axis=0}
    %sum: f32[2,2] = add(%rows, %place)
    %n: f32[2,2] = layer_norm(%sum) {axis=1}
    %p: f32[2,2] = matmul(%sum, %n)
    return %sum, %p
  })");
  const Graph bf16 = store_narrow(graph, DType::bf16);
  verify(bf16);
  const Tensor i = ints({2}, {1, 0});
  EXPECT_EQ(interpret(bf16, {i})[0].as_double(0), interpret(graph, {i})[0].as_double(0));
  for (const Node& node : bf16.nodes())
    if (node.op == Op::matmul) EXPECT_EQ(bf16.type(node.outputs[0]).dtype, DType::bf16);
}

/// The element type of each node's result, by its name.
std::map<std::string, DType> results_of(const Graph& graph) {
  std::map<std::string, DType> types;
  for (const Node& node : graph.nodes())
    types[graph.value(node.outputs[0]).name] = graph.type(node.outputs[0]).dtype;
  return types;
}

/// As DynamicQuantizeLinear does: the scale is computed, and read as f32.
TEST(StoreAs, WhatIsQuantisedStaysWide) {
  const Graph graph = parse_graph(R"(graph g(%x: f32[2,3]) {
    %m: f32[] = reduce_max(%x) {axes=[0,1], keepdims=0}
    %n = constant f32[] {0.05}
    %s: f32[] = mul(%m, %n)
    %q: u8[2,3] = round(%x, %s) {to="u8"}
    return %q, %s
  })");
  const Graph bf16 = store_narrow(graph, DType::bf16);
  verify(bf16);
  const Tensor result = interpret(bf16, {reals({2, 3}, {1, 2, 3, 4, 5, 10})})[0];
  for (std::int64_t i = 0; i < 5; ++i) EXPECT_NEAR(result.as_double(i), 2 * static_cast<double>(i + 1), 1);
}

TEST(StoreAs, SumsThatOnlyNormsReadStayWide) {
  const Graph graph = parse_graph(R"(graph g(%x: f32[2,4], %r: f32[2,4]) {
    %w = constant f32[4,4] {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}
    %p: f32[2,4] = matmul(%x, %w)
    %s: f32[2,4] = add(%p, %r)
    %n: f32[2,4] = layer_norm(%s) {axis=1}
    %q: f32[2,4] = matmul(%n, %w)
    %t: f32[2,4] = add(%q, %s)
    %m: f32[2,4] = layer_norm(%t) {axis=1}
    %u: f32[2,4] = add(%m, %p)
    %o: f32[2,4] = matmul(%u, %w)
    return %o
  })");
  std::map<std::string, DType> types = results_of(store_narrow(graph, DType::bf16));
  EXPECT_EQ(types.at("s"), DType::f32);
  EXPECT_EQ(types.at("t"), DType::f32);
  EXPECT_EQ(types.at("n"), DType::bf16);
  EXPECT_EQ(types.at("u"), DType::bf16);  // a product reads it
  types = results_of(store_narrow(graph, DType::bf16, {.keep_wide = false}));
  for (const char* name : {"s", "t", "n", "u"}) EXPECT_EQ(types.at(name), DType::bf16) << name;
}

TEST(StoreAs, SumsStayWideWhereMovesAndFoldsReadThem) {
  const Graph graph = parse_graph(R"(graph g(%x: f32[2,4], %r: f32[2,4]) {
    %w = constant f32[4,4] {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}
    %v: f32[2,4] = slice(%r) {starts=[0,0], sizes=[2,4], steps=[1,1]}
    %s: f32[2,4] = add(%x, %v)
    %n: f32[2,4] = layer_norm(%s) {axis=1}
    %q: f32[2,4] = matmul(%n, %w)
    %t: f32[2,4] = add(%q, %s)
    %c: f32[1,4] = slice(%t) {starts=[1,0], sizes=[1,4], steps=[1,1]}
    %m: f32[4] = reduce_sum(%c) {axes=[0], keepdims=0}
    %o: f32[2,4] = matmul(%q, %w)
    return %m, %o
  })");
  const std::map<std::string, DType> types = results_of(store_narrow(graph, DType::bf16));
  for (const char* name : {"s", "t", "c"}) EXPECT_EQ(types.at(name), DType::f32) << name;
  EXPECT_EQ(types.at("v"), DType::bf16);  // moved before it is added
}

TEST(StoreAs, SingleNumbersOfArithmeticStayExact) {
  const Graph graph = parse_graph(R"(graph g(%x: f32[2,4]) {
    %third = constant f32[] {0.333333343}
    %c = constant f32[4] {0.1, 0.2, 0.3, 0.4}
    %m: f32[2,4] = mul(%x, %third)
    %y: f32[2,4] = add(%m, %c)
    return %y
  })");
  const Graph narrow = store_narrow(graph, DType::bf16, {.keep_wide = false});
  const std::map<std::string, DType> types = results_of(narrow);
  EXPECT_EQ(types.at("m"), DType::bf16);
  for (const Node& node : narrow.nodes()) {
    if (node.op != Op::mul && node.op != Op::add) continue;
    EXPECT_EQ(narrow.type(node.inputs[1]).dtype, node.op == Op::mul ? DType::f32 : DType::bf16);
  }
  const Graph half = store_narrow(graph, DType::f16, {.keep_wide = false});  // f32 does not mix with it
  for (const Node& node : half.nodes())
    if (node.op == Op::mul) EXPECT_EQ(half.type(node.inputs[1]).dtype, DType::f16);
}

TEST(StoreAs, GatesAndTheLastFoldsStayWide) {
  const Graph graph = parse_graph(R"(graph g(%x: f32[1,2,8,8]) {
    %mean: f32[1,2,1,1] = reduce_sum(%x) {axes=[2,3], keepdims=1}
    %w = constant f32[2,2,1,1] {1, 0, 0, 1}
    %c: f32[1,2,1,1] = conv(%mean, %w) {strides=[1,1], pads=[0,0,0,0], dilations=[1,1], groups=1}
    %gate: f32[1,2,1,1] = sigmoid(%c)
    %y: f32[1,2,8,8] = mul(%x, %gate)
    %z: f32[1,2,8,8] = conv(%y, %w) {strides=[1,1], pads=[0,0,0,0], dilations=[1,1], groups=1}
    %last: f32[1,2,1,1] = reduce_sum(%z) {axes=[2,3], keepdims=1}
    %flat: f32[1,2] = reshape(%last) {shape=[1,2]}
    %o: f32[1,2] = softmax(%flat) {axis=1}
    return %o
  })");
  const std::map<std::string, DType> types = results_of(store_narrow(graph, DType::bf16));
  for (const char* wide : {"gate", "last", "flat", "o"}) EXPECT_EQ(types.at(wide), DType::f32) << wide;
  for (const char* narrow : {"mean", "y", "z"}) EXPECT_EQ(types.at(narrow), DType::bf16) << narrow;
}

/// The head of a network of images: a mean, two layers of one row, the weights of the second turned.
constexpr const char* head = R"(graph g(%x: f32[1,4,8,8]) {
    %y: f32[1,4,8,8] = relu(%x)
    %mean: f32[1,4,1,1] = reduce_sum(%y) {axes=[2,3], keepdims=1}
    %flat: f32[1,4] = reshape(%mean) {shape=[1,4]}
    %w = constant f32[4,3] {0.1, 0.7, -0.3, 0.9, -0.2, 0.4, 0.3, 0.6, 0.8, -0.5, 0.11, 0.13}
    %p: f32[1,3] = matmul(%flat, %w)
    %b = constant f32[3] {0.3, -0.1, 0.7}
    %s: f32[1,3] = add(%p, %b)
    %r: f32[1,3] = relu(%s)
    %u = constant f32[2,3] {0.37, 0.11, -0.61, 0.23, 0.19, 0.41}
    %t: f32[3,2] = transpose(%u) {perm=[1,0]}
    %o: f32[1,2] = matmul(%r, %t)
    return %o
  })";

/// Of a recurrence: the cell is given and read, and the hidden state given twice.
TEST(StoreAs, StatesAreConvertedOnceOrNotAtAll) {
  const Graph graph = parse_graph(R"(graph g(%x: f32[2,8], %h: f32[2,8], %c: f32[2,8]) {
    %w = constant f32[1,1] {0.5}
    %s: f32[2,8] = add(%x, %h)
    %f: f32[2,8] = sigmoid(%s)
    %n: f32[2,8] = mul(%f, %c)
    %t: f32[2,8] = tanh(%n)
    %o: f32[2,8] = mul(%t, %f)
    return %o, %n, %o
  })");
  const Graph bf16 = store_narrow(graph, DType::bf16);
  EXPECT_EQ(bf16.outputs[0], bf16.outputs[2]);
  EXPECT_NE(bf16.node(bf16.value(bf16.outputs[1]).producer).op, Op::cast)
      << "the cell is f32 as it is computed";
  EXPECT_EQ(std::ranges::count_if(bf16.nodes(),
                                  [&](const Node& node) {
                                    return node.op == Op::cast &&
                                           std::ranges::find(bf16.outputs, node.outputs[0]) !=
                                               bf16.outputs.end();
                                  }),
            1);
}

TEST(StoreAs, RowsOfProductsStayWideWhenAsked) {
  const Graph graph = parse_graph(head);
  const Graph stored = store_narrow(graph, DType::bf16, {.mixed_products = true});
  const std::map<std::string, DType> types = results_of(stored);
  for (const char* wide : {"mean", "flat", "p", "s", "r", "o"}) EXPECT_EQ(types.at(wide), DType::f32) << wide;
  for (const char* narrow : {"y", "t"}) EXPECT_EQ(types.at(narrow), DType::bf16) << narrow;
  int narrow_constants = 0;
  for (const Value& value : stored.values())
    narrow_constants += value.constant && value.constant->dtype() == DType::bf16 ? 1 : 0;
  EXPECT_EQ(narrow_constants, 2) << "the weights";
  EXPECT_EQ(results_of(store_narrow(graph, DType::bf16)).at("mean"), DType::bf16);
}

// What two products read cannot be packed for one of them.
TEST(StoreAs, RowsOfSharedWeightsAreNarrow) {
  const Graph graph = parse_graph(R"(graph g(%x: f32[1,2,8]) {
    %mean: f32[1,2] = reduce_sum(%x) {axes=[2], keepdims=0}
    %w = constant f32[2,2] {0.1, 0.7, -0.3, 0.9}
    %p: f32[1,2] = matmul(%mean, %w)
    %o: f32[1,2] = matmul(%p, %w)
    return %o
  })");
  EXPECT_EQ(results_of(store_narrow(graph, DType::bf16, {.mixed_products = true})).at("mean"), DType::bf16);
}

// Two rows are no row.
TEST(StoreAs, MoreRowsAreNarrow) {
  const Graph graph = parse_graph(R"(graph g(%x: f32[2,4,8]) {
    %mean: f32[2,4] = reduce_sum(%x) {axes=[2], keepdims=0}
    %w = constant f32[4,2] {0.1, 0.7, -0.3, 0.9, -0.2, 0.4, 0.3, 0.6}
    %o: f32[2,2] = matmul(%mean, %w)
    return %o
  })");
  EXPECT_EQ(results_of(store_narrow(graph, DType::bf16, {.mixed_products = true})).at("mean"), DType::bf16);
}

// Filters of one channel are multiplied in f32 whatever is stored; others meet the data in pairs of bf16.
TEST(StoreAs, DepthwiseFiltersStayWideWhenAsked) {
  const Graph graph = parse_graph(R"(graph g(%x: f32[1,2,4]) {
    %w = constant f32[2,1,1] {0.1, 0.7}
    %v = constant f32[2,2,1] {0.1, 0.7, -0.3, 0.9}
    %d: f32[1,2,4] = conv(%x, %w) {strides=[1], pads=[0,0], dilations=[1], groups=2}
    %o: f32[1,2,4] = conv(%d, %v) {strides=[1], pads=[0,0], dilations=[1], groups=1}
    return %o
  })");
  const auto filters = [](const Graph& stored) {
    std::vector<DType> types;
    for (const Node& node : stored.nodes())
      if (node.op == Op::conv) types.push_back(stored.type(node.inputs[1]).dtype);
    return types;
  };
  const Graph mixed = store_narrow(graph, DType::bf16, {.mixed_products = true});
  verify(mixed);
  EXPECT_EQ(filters(mixed), (std::vector<DType>{DType::f32, DType::bf16}));
  EXPECT_EQ(filters(store_narrow(graph, DType::bf16)), (std::vector<DType>{DType::bf16, DType::bf16}));
  EXPECT_EQ(filters(store_narrow(graph, DType::f16, {.mixed_products = true})),
            (std::vector<DType>{DType::f16, DType::f16}));
}

TEST(StoreAs, FiniteMasksStayFinite) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {1, 1}));
  const ValueId mask = graph.add_constant(reals({1, 1}, {-3.4028234663852886e38}));
  graph.outputs = {graph.add(Op::matmul, {x, mask})};
  const Tensor result = interpret(store_narrow(graph, DType::bf16), {reals({1, 1}, {1})})[0];
  EXPECT_TRUE(std::isfinite(result.as_double(0)));
  EXPECT_LT(result.as_double(0), -3e38);
}

TEST(StoreAs, RoundsToNearestEvenAndKeepsSpecialValues) {
  Graph graph;
  Tensor values(DType::f32, {7});
  const double infinity = std::numeric_limits<double>::infinity();
  const double given[] = {1 + 0x1p-8, 1 + 3 * 0x1p-8, -(1 + 0x1.8p-8), 3.4e38,
                          -infinity,  std::nan(""),   0x1p-140};
  for (std::int64_t i = 0; i < 7; ++i) values.set_double(i, given[i]);
  const ValueId x = graph.add_input("x", make_type(DType::f32, {1, 1}));
  graph.outputs = {graph.add(Op::matmul, {x, graph.add_constant(values.reshaped({1, 7}))})};
  const Graph bf16 = store_narrow(graph, DType::bf16);
  const auto stored = std::find_if(bf16.values().begin(), bf16.values().end(),
                                   [](const Value& value) { return value.constant.has_value(); });
  ASSERT_NE(stored, bf16.values().end());
  const double wanted[] = {1, 1 + 0x1p-6, -(1 + 0x1p-7), 0x1.fep127, -infinity, 0, 0};
  for (std::int64_t i = 0; i < 7; ++i) {
    const double got = stored->constant->as_double(i);
    if (i == 5)
      EXPECT_TRUE(std::isnan(got));
    else if (i == 6)
      EXPECT_NEAR(got, 0x1p-140, 0x1p-133);
    else
      EXPECT_EQ(got, wanted[i]) << i;
  }
}

TEST(StoreAs, HalfFloatsStayFiniteAndKeepElevenBits) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {1, 1}));
  const ValueId weights = graph.add_constant(reals({1, 4}, {1 + 0x1.8p-10, -1e30, 0x1p-24, 0.1}));
  graph.outputs = {graph.add(Op::matmul, {x, weights})};
  const Graph half = store_narrow(graph, DType::f16);
  verify(half);
  EXPECT_EQ(half.type(half.outputs[0]).dtype, DType::f32);
  const Tensor result = interpret(half, {reals({1, 1}, {1})})[0];
  EXPECT_EQ(result.as_double(0), 1 + 0x1p-9);
  EXPECT_EQ(result.as_double(1), -65504);
  EXPECT_EQ(result.as_double(2), 0x1p-24);
  EXPECT_NEAR(result.as_double(3), 0.1, 0x1p-14);
}

TEST(StoreAs, CastsToWhatIsStoredVanish) {
  const Graph graph = parse_graph(R"(graph g(%x: bf16[3]) {
    %f: f32[3] = cast(%x) {to="f32"}
    %r: f32[3] = relu(%f)
    %y: bf16[3] = cast(%r) {to="bf16"}
    return %y
  })");
  const Graph bf16 = store_narrow(graph, DType::bf16);
  verify(bf16);
  EXPECT_EQ(bf16.nodes().size(), 1U);
  EXPECT_EQ(bf16.type(bf16.outputs[0]).dtype, DType::bf16);
}

/// Per value of the graph by name: its element type.
std::map<std::string, DType> types_of(const Graph& graph) {
  std::map<std::string, DType> types;
  for (const Value& value : graph.values()) types[value.name] = value.type.dtype;
  return types;
}

TEST(StoreAs, AnglesOfPositionsStayWideUntilTheyScale) {
  const Graph graph = parse_graph(R"(graph g(%x: f32[512,4], %p: i64[512,1]) {
    %f: f32[512,1] = cast(%p) {to="f32"}
    %rates = constant f32[1,2] {1.0, 0.1}
    %a: f32[512,2] = matmul(%f, %rates)
    %b: f32[512,4] = concat(%a, %a) {axis=1}
    %c: f32[512,4] = cos(%b)
    %y: f32[512,4] = mul(%x, %c)
    %w = constant f32[4,4] {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}
    %z: f32[512,4] = matmul(%y, %w)
    return %z
  })");
  const Graph narrow = store_narrow(graph, DType::bf16);
  verify(narrow);
  const std::map<std::string, DType> types = types_of(narrow);
  for (const char* name : {"f", "a", "b", "c"}) EXPECT_EQ(types.at(name), DType::f32) << name;
  EXPECT_EQ(types.at("y"), DType::bf16);
  std::vector<std::int64_t> positions(512);
  std::iota(positions.begin(), positions.end(), 0);
  const std::vector<Tensor> inputs = {reals({512, 4}, std::vector<double>(2048, 1)),
                                      ints({512, 1}, positions)};
  const Tensor exact = interpret(graph, inputs)[0], rounded = interpret(narrow, inputs)[0];
  for (std::int64_t i = 0; i < exact.size(); ++i)
    ASSERT_NEAR(rounded.as_double(i), exact.as_double(i), 0.01) << i;
}

TEST(StoreAs, RunningSumsAndLogarithmsOfExponentsStayWide) {
  const Graph graph = parse_graph(R"(graph g(%x: f32[64]) {
    %s: f32[64] = cumsum(%x) {axis=0, exclusive=0, reverse=0}
    %i: f32[64,1] = reshape(%s) {shape=[64,1]}
    %j: f32[1,64] = reshape(%s) {shape=[1,64]}
    %d: f32[64,64] = sub(%i, %j)
    %p: f32[64,64] = exp(%d)
    %y: f32[64,64] = mul(%p, %x)
    %o: f32[64] = cumsum(%x) {axis=0, exclusive=0, reverse=0}
    %z: f32[64] = tanh(%o)
    %e: f32[64] = exp(%x)
    %t: f32[] = reduce_sum(%e) {axes=[0], keepdims=0}
    %l: f32[] = log(%t)
    %u: f32[64] = sub(%x, %l)
    %q: f32[64] = exp(%u)
    return %y, %z, %q
  })");
  for (const bool keep_wide : {false, true}) {
    const Graph narrow = store_narrow(graph, DType::bf16, {.keep_wide = keep_wide});
    verify(narrow);
    const std::map<std::string, DType> types = types_of(narrow);
    for (const char* name : {"s", "i", "j", "d", "p", "l", "u", "q"})
      EXPECT_EQ(types.at(name), DType::f32) << name;
    if (!keep_wide) EXPECT_EQ(types.at("o"), DType::bf16);
    const std::vector<Tensor> inputs = {reals({64}, std::vector<double>(64, -0.69921875))};
    const Tensor exact = interpret(graph, inputs)[0], rounded = interpret(narrow, inputs)[0];
    for (std::int64_t i = 63; i < exact.size(); i += 65)
      ASSERT_NEAR(rounded.as_double(i), exact.as_double(i), 0.01 * std::abs(exact.as_double(i))) << i;
  }
}

TEST(StoreAs, PlacesToReadStayWideUnlessProductsReadThem) {
  const Graph graph = parse_graph(R"(graph g(%x: f32[8,8], %table: f32[900]) {
    %w = constant f32[8,8] {1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1}
    %m: f32[8,8] = matmul(%x, %w)
    %r: f32[8,8] = relu(%m)
    %k = constant f32[] {899.0}
    %s: f32[8,8] = mul(%r, %k)
    %i: i64[8,8] = cast(%s) {to="i64"}
    %g: f32[8,8] = gather(%table, %i) {axis=0}
    %n: f32[8,8] = matmul(%r, %w)
    return %g, %n
  })");
  const Graph narrow = store_narrow(graph, DType::bf16);
  verify(narrow);
  const std::map<std::string, DType> types = types_of(narrow);
  EXPECT_EQ(types.at("s"), DType::f32);
  EXPECT_EQ(types.at("r"), DType::bf16);
}

/// What bilinear reading needs: the pixel below a place, and how far behind it the place lies.
TEST(StoreAs, FractionsOfPlacesAreExactAndSumsOfCoordinatesStayWide) {
  const Graph graph = parse_graph(R"(graph g(%x: f32[256,2], %turn: f32[256,2]) {
    %k = constant f32[] {100.0}
    %p: f32[256,2] = mul(%x, %turn)
    %c: f32[256] = reduce_sum(%p) {axes=[1], keepdims=0}
    %s: f32[256] = mul(%c, %k)
    %f: f32[256] = floor(%s)
    %d: f32[256] = sub(%s, %f)
    %y: f32[256] = relu(%d)
    return %y
  })");
  const Graph narrow = store_narrow(graph, DType::bf16);
  verify(narrow);
  const std::map<std::string, DType> types = types_of(narrow);
  EXPECT_EQ(types.at("c"), DType::f32);
  EXPECT_EQ(types.at("s"), DType::f32);
  std::vector<double> places(512), ones(512, 1);
  for (std::size_t i = 0; i < 256; ++i) {
    places[2 * i] = static_cast<double>(i) / 256;  // which 8 bits hold
    ones[2 * i + 1] = 0;
  }
  const std::vector<Tensor> inputs = {reals({256, 2}, places), reals({256, 2}, ones)};
  const Tensor exact = interpret(graph, inputs)[0], rounded = interpret(narrow, inputs)[0];
  for (std::int64_t i = 0; i < exact.size(); ++i)
    ASSERT_NEAR(rounded.as_double(i), exact.as_double(i), 0.004) << i;
}

/// 16 bits hold no odd number above 256: a place there would be its neighbour, and one outside might be inside.
TEST(StoreAs, PlacesAreComparedAndBecomeIntegersAsTheyAre) {
  const Graph graph = parse_graph(R"(graph g(%x: f32[4], %map: f32[512]) {
    %k = constant f32[] {511.0}
    %low = constant f32[] {0.0}
    %last = constant f32[] {511.0}
    %p: f32[4] = mul(%x, %k)
    %f: f32[4] = floor(%p)
    %c: f32[4] = minimum(%f, %last)
    %i: i32[4] = cast(%c) {to="i32"}
    %inside: bool[4] = less_equal(%f, %last)
    %seen: f32[4] = gather(%map, %i) {axis=0}
    %y: f32[4] = where(%inside, %seen, %low)
    return %y
  })");
  const Graph narrow = store_narrow(graph, DType::bf16);
  verify(narrow);
  std::vector<double> map(512);
  for (std::size_t i = 0; i < map.size(); ++i) map[i] = i % 2 == 0 ? 0 : 1;
  const std::vector<Tensor> inputs = {reals({4}, {0.50390625, 1.0078125, 0.75, 0.99609375}),
                                      reals({512}, map)};
  const Tensor exact = interpret(graph, inputs)[0], stored = interpret(narrow, inputs)[0];
  for (std::int64_t i = 0; i < exact.size(); ++i) EXPECT_EQ(stored.as_double(i), exact.as_double(i)) << i;
}

}  // namespace
}  // namespace sylvite::store_narrow_test

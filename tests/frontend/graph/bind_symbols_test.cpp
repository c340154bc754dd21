#include "frontend/graph/bind_symbols.h"

#include <gmock/gmock.h>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/verifier.h"
#include "sylvite/graph_text.h"

namespace sylvite::bind_symbols_test {
namespace {

/// A text that goes through operations of every family with symbols in types and attributes.
constexpr const char* text = R"(graph g(%x: f32[batch,3,width]) where {batch: 1..8@1+4, width: 4..64} {
  %w = constant f32[2,3,2] {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}
  %y: f32[batch,2,floor(width/2)] = conv(%x, %w) {dilations=[1], groups=1, pads=[0,0], strides=[2]}
  %flat: f32[batch,2*floor(width/2)] = reshape(%y) {shape=[batch,2*floor(width/2)]}
  %count: i64[1] = extents() {values=[2*floor(width/2)]}
  %real: f32[1] = cast(%count) {to="f32"}
  %scaled: f32[batch,2*floor(width/2)] = div(%flat, %real)
  %twice: f32[2*batch,2*floor(width/2)] = concat(%scaled, %scaled) {axis=0}
  %cut: f32[batch,2*floor(width/2)] = slice(%twice) {sizes=[batch,2*floor(width/2)], starts=[batch,0], steps=[1,1]}
  return %cut
}
)";

Graph symbolic() {
  std::string with_inline = text;
  return parse_graph(with_inline);
}

Tensor counted(const Dims& dims) {
  Tensor tensor(DType::f32, dims);
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, static_cast<double>(i % 7) - 3);
  return tensor;
}

TEST(BindSymbols, ExtentsAreConstantsOfTheirType) {
  const auto bound = [](const std::string& type, const std::string& attributes) {
    const Graph graph = parse_graph("graph g(%x: f32[n]) where {n: 1..} {\n  %c: " + type +
                                    " = extents() {values=[n]" + attributes + "}\n  return %c\n}\n");
    verify(graph);
    const Graph numbers = bind_symbols(graph, {{"n", 49}});
    EXPECT_EQ(interpret(graph, {Tensor(DType::f32, {49})}).at(0).as_double(0),
              numbers.value(numbers.outputs[0]).constant->as_double(0));
    return *numbers.value(numbers.outputs[0]).constant;
  };
  EXPECT_EQ(bound("i64[1]", "").as_int64(0), 49);
  EXPECT_EQ(bound("f32[]", R"(, dtype="f32", rank=0)").as_double(0), 49);
  EXPECT_EQ(bound("f32[1,1]", R"(, dtype="f32", inverse=1, rank=2)").as_double(0), 1.0F / 49);
  EXPECT_THROW((void)bound("i64[1]", ", inverse=1"), ModelError) << "no integer";
  EXPECT_THROW((void)bound("i64[1]", ", rank=1000000000000"), ModelError);
  EXPECT_THROW((void)bound("f32[1]", R"(, dtype="bool")"), ModelError);
}

TEST(BindSymbols, TextOfSymbolicGraphsReadsBack) {
  const Graph graph = symbolic();
  EXPECT_NO_THROW(verify(graph));
  EXPECT_EQ(graph_text(parse_graph(graph_text(graph))), graph_text(graph));
  EXPECT_EQ(graph.symbols.table.at("batch").hints, (std::vector<std::int64_t>{1, 4}));
}

TEST(BindSymbols, BoundGraphsMeanTheSame) {
  const Graph graph = symbolic();
  EXPECT_TRUE(graph.symbols.guards().empty());
  for (const Dims& dims : {Dims{1, 3, 4}, Dims{4, 3, 9}, Dims{8, 3, 64}}) {
    const SymbolValues values = read_symbols(graph, {dims});
    EXPECT_EQ(values, (SymbolValues{{"batch", dims[0]}, {"width", dims[2]}}));
    const Graph bound = bind_symbols(graph, values);
    EXPECT_NO_THROW(verify(bound));
    EXPECT_TRUE(bound.symbols.table.empty());
    const Tensor x = counted(dims);
    const Tensor result = interpret(bound, {x}).at(0);
    EXPECT_EQ(result.dims(), (Dims{dims[0], dims[2] / 2 * 2}));
    EXPECT_EQ(interpret(graph, {x}).at(0).dims(), result.dims());
    double first = 0;
    for (std::int64_t i = 0; i < 3; ++i)
      for (std::int64_t j = 0; j < 2; ++j)
        first += x.as_double(i * dims[2] + j) * static_cast<double>(1 + 2 * i + j);
    EXPECT_NEAR(result.as_double(0), first / static_cast<double>(result.dims()[1]), 1e-5);
  }
}

TEST(BindSymbols, TheInterpreterNeedsNoRanges) {
  const Graph graph = parse_graph("graph g(%a: f32[n]) {\n  %y: f32[n] = relu(%a)\n  return %y\n}\n");
  EXPECT_TRUE(graph.symbols.table.empty());
  EXPECT_EQ(interpret(graph, {counted({5})}).at(0).dims(), Dims{5});
}

std::string refusal(const Graph& graph, const std::vector<Dims>& shapes) {
  try {
    (void)read_symbols(graph, shapes);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(BindSymbols, RefusesSizesThatDoNotFit) {
  const Graph graph = symbolic();
  EXPECT_EQ(refusal(graph, {{9, 3, 9}}), "input 'x', dimension 0: batch is 9, expected 1 to 8");
  EXPECT_EQ(refusal(graph, {{1, 4, 9}}), "input 'x', dimension 1: the extent is 4, expected 3");
  EXPECT_EQ(refusal(graph, {{1, 3}}), "input 'x' has 2 dimensions, expected 3 of f32[batch,3,width]");
  const Graph twice =
      parse_graph("graph g(%a: f32[n], %b: f32[n], %c: f32[2*n]) where {n: 1..} {\n  return %a, %b, %c\n}\n");
  EXPECT_EQ(refusal(twice, {{2}, {3}, {4}}), "input 'b', dimension 0: the extent is 3, expected n = 2");
  EXPECT_EQ(refusal(twice, {{2}, {2}, {5}}), "input 'c', dimension 0: the extent is 5, expected 2*n = 4");
}

TEST(BindSymbols, ChecksGuards) {
  const Graph graph = parse_graph(
      "graph g(%a: f32[n], %b: f32[m]) where {m: 1.., n: 1..} {\n  %y: f32[n] = add(%a, %b)\n  return "
      "%y\n}\n");
  ASSERT_EQ(graph.symbols.guards().size(), 1U);
  EXPECT_NO_THROW(verify(graph));
  EXPECT_EQ(bind_symbols(graph, {{"m", 3}, {"n", 3}}).type(2).to_string(), "f32[3]");
  EXPECT_THAT([&] { (void)bind_symbols(graph, {{"m", 3}, {"n", 4}}); },
              testing::ThrowsMessage<UnsupportedError>(testing::HasSubstr("add")));
}

}  // namespace
}  // namespace sylvite::bind_symbols_test

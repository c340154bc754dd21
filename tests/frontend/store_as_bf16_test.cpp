#include "frontend/store_as_bf16.h"

#include <algorithm>
#include <cmath>

#include "frontend/text.h"
#include "tests/frontend/run_op.h"

namespace sylvite {
namespace {

TEST(StoreAsBf16, KeepsTheInterfaceAndRoundsWhatIsBetween) {
  const Graph graph = parse_graph(R"(graph g(%x: f32[2,3], %i: i64[2]) {
    %w = constant f32[3] {0.1, -2.0, 3.3}
    %t: f32[2,3] = mul(%x, %w)
    %g: f32[2,3] = gather(%t, %i) {axis=0}
    %c: f32[2] = cast(%i) {to="f32"}
    %s: f32[2] = reduce_sum(%g) {axes=[1], keepdims=0}
    %y: f32[2] = add(%s, %c)
    return %y, %i
  })");
  const Graph bf16 = store_as_bf16(graph);
  verify(bf16);
  EXPECT_EQ(bf16.type(bf16.inputs[0]).dtype, DType::f32);
  EXPECT_EQ(bf16.type(bf16.outputs[0]).dtype, DType::f32);
  EXPECT_EQ(bf16.type(bf16.outputs[1]).dtype, DType::i64);
  EXPECT_EQ(bf16.output_name(0), graph.output_name(0));
  for (const Value& value : bf16.values()) {
    const bool outside = value.name == "x" || &value == &bf16.value(bf16.outputs[0]);
    EXPECT_TRUE(outside || value.type.dtype != DType::f32) << value.name;
  }
  const std::vector<Tensor> inputs = {reals({2, 3}, {1, 2, 3, 4, 5, 6}), ints({2}, {1, 0})};
  const Tensor exact = interpret(graph, inputs)[0], rounded = interpret(bf16, inputs)[0];
  for (std::int64_t i = 0; i < exact.size(); ++i)
    EXPECT_NEAR(rounded.as_double(i), exact.as_double(i), 0.02 * std::abs(exact.as_double(i)));
}

TEST(StoreAsBf16, FiniteMasksStayFinite) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {1}));
  const ValueId mask = graph.add_constant(reals({1}, {-3.4028234663852886e38}));
  graph.outputs = {graph.add(Op::minimum, {x, mask})};
  const Tensor result = interpret(store_as_bf16(graph), {reals({1}, {0})})[0];
  EXPECT_TRUE(std::isfinite(result.as_double(0)));
  EXPECT_LT(result.as_double(0), -3e38);
}

TEST(StoreAsBf16, RoundsToNearestEvenAndKeepsSpecialValues) {
  Graph graph;
  Tensor values(DType::f32, {7});
  const double infinity = std::numeric_limits<double>::infinity();
  const double given[] = {1 + 0x1p-8, 1 + 3 * 0x1p-8, -(1 + 0x1.8p-8), 3.4e38,
                          -infinity,  std::nan(""),   0x1p-140};
  for (std::int64_t i = 0; i < 7; ++i) values.set_double(i, given[i]);
  const ValueId x = graph.add_input("x", make_type(DType::f32, {7}));
  graph.outputs = {graph.add(Op::add, {x, graph.add_constant(values)})};
  const Graph bf16 = store_as_bf16(graph);
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

TEST(StoreAsBf16, CastsToWhatIsStoredVanish) {
  const Graph graph = parse_graph(R"(graph g(%x: bf16[3]) {
    %f: f32[3] = cast(%x) {to="f32"}
    %r: f32[3] = relu(%f)
    %y: bf16[3] = cast(%r) {to="bf16"}
    return %y
  })");
  const Graph bf16 = store_as_bf16(graph);
  verify(bf16);
  EXPECT_EQ(bf16.nodes().size(), 1U);
  EXPECT_EQ(bf16.type(bf16.outputs[0]).dtype, DType::bf16);
}

}  // namespace
}  // namespace sylvite

#include "frontend/store_as_bf16.h"

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

}  // namespace
}  // namespace sylvite

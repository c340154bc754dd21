// In 16 bits on a GPU, against the interpreter in f32: what these would spoil stays f32, such as angles of positions; norms of
// images whose channels lie innermost.

#include <fmt/ranges.h>

#include "sylvite/graph_text.h"
#include "tests/gpu/gpu_test.h"
#include "tests/runtime/test_session.h"

namespace sylvite::gpu_narrow_test {
namespace {

constexpr std::int64_t rows = 96;

/// Two halves of each row turned by the angles of its position; the angles as products of rows or of columns and rows.
Graph rotary(const char* angles) {
  return parse_graph(fmt::format(R"(graph rotary(%x: f32[96,8], %p: i64[96,1]) {{
    %f: f32[96,1] = cast(%p) {{to="f32"}}
    %rates = constant f32[1,4] {{1.0, 0.37, 0.1, 0.013}}
    %a: f32[96,4] = {}(%f, %rates)
    %angles: f32[96,8] = concat(%a, %a) {{axis=1}}
    %c: f32[96,8] = cos(%angles)
    %s: f32[96,8] = sin(%angles)
    %u: f32[96,4] = slice(%x) {{sizes=[96,4], starts=[0,0], steps=[1,1]}}
    %v: f32[96,4] = slice(%x) {{sizes=[96,4], starts=[0,4], steps=[1,1]}}
    %n: f32[96,4] = neg(%v)
    %t: f32[96,8] = concat(%n, %u) {{axis=1}}
    %xc: f32[96,8] = mul(%x, %c)
    %ts: f32[96,8] = mul(%t, %s)
    %y: f32[96,8] = add(%xc, %ts)
    return %y
  }})",
                                 angles));
}

ValueId conv(Graph& graph, ValueId x, std::int64_t channels) {
  const ValueId filters =
      graph.add_constant(sample_tensor(DType::f32, {channels, graph.type(x).dims()[1], 1, 1}));
  return graph.add(Op::conv, {x, filters},
                   {{"strides", Dims{1, 1}},
                    {"pads", Dims{0, 0, 0, 0}},
                    {"dilations", Dims{1, 1}},
                    {"groups", std::int64_t{1}}});
}

/// An image between convolutions over one root of a mean square: over its channels, its pixels, or, cut so, groups of channels.
Graph normed_image(const Dims& cut, const Dims& axes) {
  Graph graph;
  const Dims image = {3, 24, 9, 11};
  const ValueId x = conv(graph, graph.add_input("x", make_type(DType::f32, {3, 16, 9, 11})), image[1]);
  std::int64_t count = 1;
  Dims ones = cut;
  for (const std::int64_t axis : axes) {
    count *= cut[static_cast<std::size_t>(axis)];
    ones[static_cast<std::size_t>(axis)] = 1;
  }
  const auto number = [&](double value) {
    return graph.add_constant(Tensor::scalar_f32(static_cast<float>(value)));
  };
  const auto view = [&](ValueId id, const Dims& dims) {
    return cut == image ? id : graph.add(Op::reshape, {id}, {{"shape", dims}});
  };
  const ValueId seen = view(x, cut);
  const ValueId sum = graph.add(Op::reduce_sum, {graph.add(Op::mul, {seen, seen})},
                                {{"axes", axes}, {"keepdims", std::int64_t{1}}});
  const ValueId mean = graph.add(Op::mul, {sum, number(1.0 / static_cast<double>(count))});
  const ValueId inverse = graph.add(Op::rsqrt, {graph.add(Op::add, {mean, number(1e-3)})});
  const ValueId spread = graph.add(Op::broadcast_to, {inverse}, {{"shape", cut}});
  const ValueId normed = graph.add(Op::mul, {x, cut == image ? inverse : view(spread, image)});
  graph.outputs = {conv(graph, graph.add(Op::relu, {normed}), 8)};
  return graph;
}

class GpuNarrow : public GpuTest, public testing::WithParamInterface<const char*> {
 protected:
  TemporaryFolder folder_;
};

TEST_P(GpuNarrow, PositionsTurnBySoManyAngles) {
  std::vector<Tensor> inputs = {sample_tensor(DType::f32, {rows, 8}), Tensor(DType::i64, {rows, 1})};
  for (std::int64_t i = 0; i < rows; ++i) inputs[1].set_int64(i, i < 90 ? 1950 + i : 32700 + 11 * i);
  for (const char* angles : {"mul", "matmul"}) {
    SCOPED_TRACE(angles);
    CompileOptions options = test_options(folder_.path());
    options.set["compile.device"] = "cuda";
    options.set["compile.precision"] = GetParam();
    Built built = build_graph(rotary(angles), options);
    expect_near(built.program.run(inputs).at(0), interpret(rotary(angles), inputs).at(0), 0.02);
  }
}

TEST_P(GpuNarrow, ImagesOverTheirMeanSquares) {
  const std::vector<Tensor> inputs = {sample_tensor(DType::f32, {3, 16, 9, 11})};
  const std::pair<Dims, Dims> cases[] = {{{3, 24, 9, 11}, {1}},
                                         {{3, 24, 9, 11}, {2, 3}},
                                         {{3, 24, 1, 9, 11}, {2, 3, 4}},
                                         {{3, 4, 6, 9, 11}, {2, 3, 4}},
                                         {{3, 4, 594}, {2}}};
  for (const auto& [cut, axes] : cases) {
    SCOPED_TRACE(fmt::format("{} over {}", fmt::join(cut, ","), fmt::join(axes, ",")));
    CompileOptions options = test_options(folder_.path());
    options.set["compile.device"] = "cuda";
    options.set["compile.precision"] = GetParam();
    const Graph graph = normed_image(cut, axes);
    Built built = build_graph(graph, options);
    expect_near(built.program.run(inputs).at(0), interpret(graph, inputs).at(0), 0.05);
  }
}

/// Rows of odd extents, which vectors go on across, and the functions that a GPU has of its own for 16 bits.
TEST_P(GpuNarrow, WorkOnOddRows) {
  const Graph graph = parse_graph(R"(graph g(%x: f32[64,129,256], %y: f32[64,1,257]) {
    %p: f32[64,129,257] = pad(%x) {high=[0,0,0], low=[0,0,1]}
    %s: f32[64,129,257] = add(%p, %y)
    %t: f32[64,129,257] = tanh(%s)
    %u: f32[64,129,257] = sigmoid(%s)
    %v: f32[64,129,257] = silu(%s)
    %w: f32[64,129,257] = gelu(%s) {approximate="tanh"}
    return %p, %t, %u, %v, %w
  })");
  std::vector<Tensor> inputs = {sample_tensor(DType::f32, {64, 129, 256}),
                                sample_tensor(DType::f32, {64, 1, 257})};
  for (std::int64_t i = 0; i < 257; ++i) inputs[1].set_double(i, (static_cast<double>(i) - 128) * 0.05);
  CompileOptions options = test_options(folder_.path());
  options.set["compile.device"] = "cuda";
  options.set["compile.precision"] = GetParam();
  Built built = build_graph(graph, options);
  const std::vector<Tensor> got = built.program.run(inputs), wanted = interpret(graph, inputs);
  for (std::size_t i = 0; i < wanted.size(); ++i) expect_near(got.at(i), wanted.at(i), 0.02);
}

/// What 3x3 windows of a convolution's image meet, times a number for each place of a window, summed.
Graph windows(std::int64_t channels) {
  Graph graph;
  Tensor at(DType::i64, {3, 24});
  for (std::int64_t i = 0; i < at.size(); ++i) at.set_int64(i, i / 24 + i % 24);
  ValueId x = conv(graph, graph.add_input("x", make_type(DType::f32, {8, 16, 26, 26})), channels);
  for (const std::int64_t axis : {2, 4})
    x = graph.add(Op::gather, {x, graph.add_constant(at)}, {{"axis", axis}});
  x = graph.add(Op::transpose, {x}, {{"perm", Dims{0, 1, 2, 4, 3, 5}}});
  x = graph.add(Op::reshape, {x}, {{"shape", Dims{8, channels, 9, 576}}});
  const ValueId shares = graph.add_input("shares", make_type(DType::f32, {8, 1, 9, 576}));
  graph.outputs = {graph.add(Op::reduce_sum, {graph.add(Op::mul, {x, shares})},
                             {{"axes", Dims{2}}, {"keepdims", std::int64_t{0}}})};
  return graph;
}

/// The rows of a table that texts have, each times a number, summed.
Graph bags() {
  Graph graph;
  Tensor at(DType::i64, {700, 9});
  for (std::int64_t i = 0; i < at.size(); ++i) at.set_int64(i, i * 7 % 50);
  const ValueId x = graph.add_input("x", make_type(DType::f32, {50, 72}));
  const ValueId rows_of = graph.add(Op::gather, {x, graph.add_constant(at)}, {{"axis", std::int64_t{0}}});
  const ValueId shares = graph.add_input("shares", make_type(DType::f32, {700, 9, 1}));
  graph.outputs = {graph.add(Op::reduce_sum, {graph.add(Op::mul, {rows_of, shares})},
                             {{"axes", Dims{1}}, {"keepdims", std::int64_t{0}}})};
  return graph;
}

TEST_P(GpuNarrow, FoldsOfWhatIsGathered) {
  for (const Graph& graph : {windows(8), windows(32), bags()}) {
    std::vector<Tensor> inputs;
    for (const ValueId input : graph.inputs)
      inputs.push_back(sample_tensor(DType::f32, graph.type(input).dims()));
    CompileOptions options = test_options(folder_.path());
    options.set["compile.device"] = "cuda";
    options.set["compile.precision"] = GetParam();
    Built built = build_graph(graph, options);
    expect_near(built.program.run(inputs).at(0), interpret(graph, inputs).at(0), 0.1);
  }
}

INSTANTIATE_TEST_SUITE_P(, GpuNarrow, testing::Values("f32", "bf16", "f16"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace sylvite::gpu_narrow_test

// Every row of both tables can be left out: what follows is right without it.

#include "lowering/passes/pass_list.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "frontend/graph/views.h"
#include "frontend/passes/pass_list.h"
#include "sylvite/graph_text.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::pass_list_test {
namespace {

/// A way to compile, and how much of a result's size its rounding may take.
struct Setting {
  std::string name;
  FrontendOptions precision;
  LoweringOptions lowering;
  double tolerance = 1e-4;
};

std::vector<Setting> settings() {
  Setting blocked{"f32, in blocks", {}, {}};
  Setting narrow{"bf16, for tensor cores", {}, {}, 0.1};
  narrow.precision.narrow = DType::bf16;
  narrow.lowering.multiply_patches = true;
  narrow.lowering.image_layout = ImageLayout::channels_last;
  narrow.lowering.refuse_template = [](const Kernel&) { return ""; };
  Setting divided{"without templates for attention", {}, {}};
  divided.lowering.refuse_template = [](const Kernel& kernel) {
    return kernel.kind == KernelClass::attention ? "it is attention" : "";
  };
  Setting whole_heads{"with a template for heads of whole vectors", {}, {}};
  whole_heads.lowering.refuse_template = [](const Kernel& kernel) {
    const bool is_odd = kernel.kind == KernelClass::attention &&
                        kernel.body.type(kernel.body.node(kernel.anchor).inputs[0]).dims().back() % 8 != 0;
    return is_odd ? "its heads are odd" : "";
  };
  Setting quantized{"8 bits", {}, {}, 0.1};
  quantized.precision.quantize = true;
  Setting widened{"weights of a few bits widened before", {}, {}};
  widened.lowering.widen_bits = true;
  return {blocked, narrow, divided, whole_heads, quantized, widened};
}

/// Patches of an image, as a vision transformer begins: rows of 32 numbers, multiplied by two matrices each, and mixed by a
/// third one.
Graph patches() {
  Graph graph;
  const ValueId image = graph.add_input("image", f32({1, 3, 8, 8}));
  const ValueId filter = weight(graph, {32, 3, 4, 4});
  const ValueId cut = graph.add(Op::conv, {image, filter},
                                {{"strides", Dims{4, 4}},
                                 {"pads", Dims{0, 0, 0, 0}},
                                 {"dilations", Dims{1, 1}},
                                 {"groups", std::int64_t{1}}});
  const ValueId rows = transpose(graph, reshape(graph, cut, {1, 32, 4}), {0, 2, 1});
  const ValueId one = graph.add(Op::mul, {scalar(graph, 2), scalar(graph, 0.5)});
  const ValueId scaled = graph.add(Op::mul, {rows, one});
  const ValueId left = dense(graph, scaled, 32, "left");
  const ValueId right = dense(graph, graph.add(Op::mul, {rows, one}), 32, "right");
  const ValueId mixed = dense(graph, transpose(graph, right, {0, 2, 1}), 64, "mixed");
  graph.outputs = {reshape(graph, left, {4, 32}),
                   graph.add(Op::mul, {right, graph.add(Op::sigmoid, {right})}),
                   transpose(graph, mixed, {0, 2, 1})};
  return graph;
}

/// Many moments of a signal side by side, after a convolution over it.
Graph signal() {
  Graph graph;
  const ValueId x = graph.add_input("image", f32({1, 16, 40}));
  const ValueId filtered = graph.add(
      Op::conv, {x, weight(graph, {16, 16, 3})},
      {{"strides", Dims{1}}, {"pads", Dims{1, 1}}, {"dilations", Dims{1}}, {"groups", std::int64_t{1}}});
  std::vector<ValueId> moments;
  for (std::int64_t i = 40; i-- > 0;)
    moments.push_back(
        graph.add(Op::slice, {filtered},
                  {{"starts", Dims{0, 0, i}}, {"sizes", Dims{1, 16, 1}}, {"steps", Dims{1, 1, 1}}}));
  graph.outputs = {graph.add(Op::concat, moments, {{"axis", std::int64_t{2}}})};
  return graph;
}

/// Group normalisation of an image, and attention of heads of six channels over its pixels.
Graph pixels() {
  Graph graph;
  const ValueId image = conv(graph, graph.add_input("image", f32({1, 8, 4, 4})), 36, 1);
  const ValueId norm = graph.add(Op::layer_norm, {reshape(graph, image, {1, 2, 288})},
                                 {{"axis", std::int64_t{2}}, {"epsilon", 1e-5}});
  const ValueId heads =
      reshape(graph, conv(graph, reshape(graph, norm, {1, 36, 4, 4}), 36, 1), {1, 2, 18, 16});
  const auto part = [&](std::int64_t first) {
    const ValueId cut =
        graph.add(Op::slice, {heads},
                  {{"starts", Dims{0, 0, first, 0}}, {"sizes", Dims{1, 2, 6, 16}}, {"steps", Dims(4, 1)}});
    return transpose(graph, cut, {0, 1, 3, 2});
  };
  const ValueId attended = graph.add(Op::attention, {part(0), part(6), part(12)});
  const ValueId back = reshape(graph, transpose(graph, attended, {0, 1, 3, 2}), {1, 12, 4, 4});
  const ValueId shares = graph.add(Op::softmax, {conv(graph, back, 16, 1)}, {{"axis", std::int64_t{1}}});
  graph.outputs = {conv(graph, back, 10, 3), conv(graph, shares, 8, 1)};
  return graph;
}

/// A product by a weight of four bits.
Graph bits() {
  Graph graph;
  Tensor numbers(DType::u8, {6, 2, 8});
  for (std::int64_t i = 0; i < numbers.size(); ++i) numbers.set_int64(i, i * 37 % 256);
  const ValueId x = graph.add_input("x", f32({5, 32}));
  graph.outputs = {graph.add(Op::matmul_bits, {x, graph.add_constant(numbers), weight(graph, {6, 2})},
                             {{"bits", std::int64_t{4}}, {"block", std::int64_t{16}}})};
  return graph;
}

/// What trains a convolution: the gradient of its filter, and sums over the pixels of a batch; groups of filters that are no
/// weights. And work between reshapes, and pixels that come twice.
Graph gradients() {
  Graph graph;
  const ValueId image = graph.add_input("image", f32({1, 16, 6, 6})),
                filter = graph.add_input("filter", f32({16, 8, 3, 3}));
  const ValueId x = graph.add_input("x", f32({8, 4, 16, 16})),
                of = graph.add_input("gradient", f32({8, 4, 16, 16}));
  graph.outputs = {
      graph.add(Op::filter_gradient, {of, x},
                {{"kernel", Dims{3, 3}},
                 {"strides", Dims{1, 1}},
                 {"pads", Dims{1, 1, 1, 1}},
                 {"dilations", Dims{1, 1}}}),
      graph.add(Op::conv, {image, filter},
                {{"strides", Dims{1, 1}},
                 {"pads", Dims{1, 1, 1, 1}},
                 {"dilations", Dims{1, 1}},
                 {"groups", std::int64_t{2}}}),
      graph.add(Op::filter_gradient, {image, image},
                {{"kernel", Dims{3, 3}},
                 {"strides", Dims{1, 1}},
                 {"pads", Dims{1, 1, 1, 1}},
                 {"dilations", Dims{1, 1}},
                 {"groups", std::int64_t{2}},
                 {"parts", std::int64_t{1}}}),
      graph.add(Op::scatter_nd,
                {graph.add(Op::neg, {graph.add_input("table", f32({4, 2}))}),
                 graph.add_constant(Tensor(DType::i64, {4096, 1})), reshape(graph, of, {4096, 2})},
                {{"reduction", std::string("add")}}),
      graph.add(Op::reduce_sum, {of}, {{"axes", Dims{0, 2, 3}}, {"keepdims", std::int64_t{0}}}),
      graph.add(Op::neg, {reshape(graph, graph.add(Op::tanh, {x}), {8, 1024})}),
      graph.add(Op::matmul,
                {graph.add(Op::transpose, {reshape(graph, of, {4096, 2})}, {{"perm", Dims{1, 0}}}),
                 reshape(graph, x, {4096, 2})}),
      graph.add(Op::gather,
                {image, graph.add_constant(Tensor::vector_i64({0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}))},
                {{"axis", std::int64_t{3}}})};
  return graph;
}

/// Products of many tiny matrices, running sums, a sum of products of repeated values, and short rows side by side.
Graph sums() {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({70, 3, 4})), y = graph.add_input("y", f32({70, 4, 2}));
  const ValueId of = graph.add(
      Op::mul, {graph.add_input("p", f32({2, 9, 1, 16})), graph.add_input("q", f32({2, 1, 10, 16}))});
  graph.outputs = {graph.add(Op::matmul, {x, y}), graph.add(Op::cumsum, {x}, {{"axis", std::int64_t{2}}}),
                   graph.add(Op::reduce_sum, {of}, {{"axes", Dims{3}}, {"keepdims", std::int64_t{0}}}),
                   graph.add(Op::concat, {x, graph.add(Op::tanh, {x})}, {{"axis", std::int64_t{0}}})};
  return graph;
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const auto& pass : frontend_passes()) names.emplace_back(pass.name);
  for (const auto& pass : lowering_passes()) names.emplace_back(pass.name);
  return names;
}

double largest(const Tensor& tensor) {
  double result = 0;
  for (std::int64_t i = 0; i < tensor.size(); ++i) result = std::max(result, std::abs(tensor.as_double(i)));
  return result;
}

void expect_near(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(actual[i].dims(), expected[i].dims());
    const double allowed = tolerance * std::max(1.0, largest(expected[i]));
    for (std::int64_t k = 0; k < actual[i].size(); ++k)
      ASSERT_NEAR(actual[i].as_double(k), expected[i].as_double(k), allowed) << "output " << i << " at " << k;
  }
}

/// Two rows of a cache that stays between runs.
Graph cached() {
  return parse_graph(
      "graph cached(%rows: f32[2,4], %past: f32[8,4]) {\n"
      "  %at = constant i64[2,4] {5, 5, 5, 5, 2, 2, 2, 2}\n"
      "  %next: f32[8,4] = scatter_elements(%past, %at, %rows) {axis=0, reduction=\"none\"}\n"
      "  %sum: f32[8,1] = reduce_sum(%next) {axes=[1], keepdims=1}\n"
      "  return %sum, %next to %past\n}\n");
}

/// Which passes of lowering change a graph with a state, whose plan computes what the graph does.
std::vector<std::string> changes_of_states() {
  const Graph graph = cached();
  PassRunner runner;
  const Plan plan = lower(graph, {}, runner);
  std::vector<Tensor> inputs = random_inputs(graph);
  std::vector<Tensor> states = {inputs.back()};
  std::vector<Tensor> plan_states = states;
  inputs.pop_back();
  expect_near(interpret_plan(plan, inputs, plan_states), interpret(graph, inputs, states), 1e-6);
  expect_near(plan_states, states, 1e-6);
  std::vector<std::string> changed;
  for (const PassReport& report : runner.reports())
    if (report.result == PassResult::changed) changed.emplace_back(report.name);
  return changed;
}

/// Attention of four heads over two of keys and values, and a gated layer whose two matrices are one.
Graph shared_heads() {
  Graph graph;
  graph.name = "shared_heads";
  const ValueId x = graph.add_input("x", f32({6, 32}));
  const auto heads_of = [&](std::int64_t heads) {
    const ValueId rows = graph.add(Op::matmul, {x, weight(graph, {32, heads * 8})});
    return transpose(graph, reshape(graph, rows, {1, 6, heads, 8}), {0, 2, 1, 3});
  };
  std::vector<ValueId> inputs = {heads_of(4)};
  for (int i = 0; i < 2; ++i) {
    const ValueId one = reshape(graph, heads_of(2), {1, 2, 1, 6, 8});
    inputs.push_back(
        reshape(graph, graph.add(Op::broadcast_to, {one}, {{"shape", Dims{1, 2, 2, 6, 8}}}), {1, 4, 6, 8}));
  }
  const ValueId attended = transpose(graph, graph.add(Op::attention, inputs), {0, 2, 1, 3});
  const ValueId both = graph.add(Op::matmul, {reshape(graph, attended, {6, 32}), weight(graph, {32, 48})});
  const auto half = [&](std::int64_t first) {
    return graph.add(Op::slice, {both},
                     {{"starts", Dims{0, first}}, {"sizes", Dims{6, 24}}, {"steps", Dims{1, 1}}});
  };
  graph.outputs = {graph.add(Op::mul, {graph.add(Op::silu, {half(0)}), half(24)})};
  return graph;
}

/// An image that is scaled by numbers for its channels, which are computed, between convolutions.
Graph scaled_channels() {
  Graph graph;
  graph.name = "scaled_channels";
  const ValueId x = graph.add_input("x", f32({2, 16, 6, 5})),
                scale = graph.add_input("scale", f32({1, 16, 1, 1}));
  const ValueId square = graph.add(Op::mul, {scale, scale});
  graph.outputs = {conv(graph, graph.add(Op::mul, {conv(graph, x, 16, 1), square}), 16, 1)};
  return graph;
}

/// A norm of rows whose mean and inverse deviation are results, too.
Graph kept_statistics() {
  Graph graph;
  graph.name = "kept_statistics";
  const ValueId x = graph.add_input("x", f32({6, 48})), scale = graph.add_input("scale", f32({48}));
  const auto number = [&](float value) { return graph.add_constant(Tensor::scalar_f32(value)); };
  const auto mean = [&](ValueId id) {
    const ValueId sum = graph.add(Op::reduce_sum, {id}, {{"axes", Dims{1}}, {"keepdims", std::int64_t{1}}});
    return graph.add(Op::mul, {sum, number(1.F / 48)});
  };
  const ValueId middle = mean(x), centered = graph.add(Op::sub, {x, middle});
  const ValueId variance = mean(graph.add(Op::mul, {centered, centered}));
  const ValueId inverse = graph.add(Op::rsqrt, {graph.add(Op::add, {variance, number(1e-5F)})});
  const Attributes last = {{"axis", std::int64_t{1}}, {"epsilon", 1e-5}};
  graph.outputs = {graph.add(Op::layer_norm, {x, scale}, last), middle, inverse};
  return graph;
}

/// A volume of one channel under windows of one column.
Graph one_channel() {
  Graph graph;
  graph.name = "one_channel";
  graph.outputs = {graph.add(Op::conv,
                             {graph.add_input("x", f32({2, 1, 5, 8, 3})), weight(graph, {4, 1, 3, 3, 1})},
                             {{"strides", Dims{1, 1, 1}},
                              {"pads", Dims{1, 1, 0, 1, 1, 0}},
                              {"dilations", Dims{1, 1, 1}},
                              {"groups", std::int64_t{1}}})};
  return graph;
}

/// Windows that move by one.
Graph windows() {
  Graph graph;
  graph.name = "windows";
  graph.outputs = {graph.add(Op::max_pool, {graph.add_input("x", f32({1, 3, 7, 6}))},
                             {{"kernel", Dims{5, 3}},
                              {"strides", Dims{1, 1}},
                              {"pads", Dims{2, 1, 2, 1}},
                              {"dilations", Dims{1, 1}}})};
  return graph;
}

/// Deviations of groups of an image's channels between convolutions.
Graph grouped_channels() {
  Graph graph;
  graph.name = "grouped_channels";
  const ValueId x = conv(graph, graph.add_input("x", f32({2, 8, 4, 4})), 16, 3);
  const ValueId cut = reshape(graph, x, {2, 4, 4, 4, 4});
  const ValueId sum = graph.add(Op::reduce_sum, {graph.add(Op::mul, {cut, cut})},
                                {{"axes", Dims{2, 3, 4}}, {"keepdims", std::int64_t{1}}});
  const ValueId spread =
      graph.add(Op::broadcast_to, {graph.add(Op::sigmoid, {sum})}, {{"shape", Dims{2, 4, 4, 4, 4}}});
  graph.outputs = {conv(graph, graph.add(Op::mul, {x, reshape(graph, spread, {2, 16, 4, 4})}), 8, 1)};
  return graph;
}

/// A norm over neighbouring channels of an image.
Graph neighbouring_channels() {
  Graph graph;
  graph.name = "neighbouring_channels";
  const ValueId x = conv(graph, graph.add_input("x", f32({2, 8, 4, 4})), 16, 3);
  const ValueId squares = reshape(graph, graph.add(Op::mul, {x, x}), {2, 1, 16, 4, 4});
  const ValueId wide = graph.add(
      Op::pad, {squares, scalar(graph, 0)},
      {{"low", Dims{0, 0, 1, 0, 0}}, {"high", Dims{0, 0, 1, 0, 0}}, {"interior", Dims{0, 0, 0, 0, 0}}});
  const ValueId means = graph.add(Op::avg_pool, {wide},
                                  {{"kernel", Dims{3, 1, 1}},
                                   {"strides", Dims{1, 1, 1}},
                                   {"pads", Dims{0, 0, 0, 0, 0, 0}},
                                   {"dilations", Dims{1, 1, 1}}});
  const ValueId size = graph.add(Op::add, {reshape(graph, means, {2, 16, 4, 4}), scalar(graph, 1)});
  graph.outputs = {conv(graph, graph.add(Op::div, {x, size}), 8, 1)};
  return graph;
}

/// Pixels that are read at given places between convolutions.
Graph read_places() {
  Graph graph;
  graph.name = "read_places";
  const auto number = [&](std::int64_t value) {
    Tensor one(DType::i32, {});
    one.set_int64(0, value);
    return graph.add_constant(one);
  };
  const ValueId any = graph.add_input("places", make_type(DType::i32, {2, 1, 16}));
  const ValueId places = graph.add(Op::minimum, {graph.add(Op::maximum, {any, number(0)}), number(15)});
  const ValueId x = conv(graph, graph.add_input("x", f32({2, 8, 4, 4})), 16, 3);
  const ValueId all = graph.add(Op::broadcast_to, {places}, {{"shape", Dims{2, 16, 16}}});
  const ValueId seen =
      graph.add(Op::gather_elements, {reshape(graph, x, {2, 16, 16}), all}, {{"axis", std::int64_t{2}}});
  const ValueId weighed = graph.add(Op::mul, {seen, graph.add_input("weights", f32({2, 1, 16}))});
  graph.outputs = {conv(graph, reshape(graph, weighed, {2, 16, 4, 4}), 8, 1)};
  return graph;
}

Graph pairs() {
  Graph graph;
  graph.name = "pairs";
  const ValueId x = graph.add_input("x", f32({4096, 2}));
  graph.outputs = {graph.add(Op::softmax, {x}, {{"axis", std::int64_t{1}}})};
  return graph;
}

/// Members of a set, each beside what all have in common.
Graph members() {
  Graph graph;
  graph.name = "members";
  const ValueId x = graph.add_input("x", f32({2, 256, 4}));
  const ValueId all = graph.add_input("all", f32({2, 1, 3}));
  const ValueId repeated = graph.add(Op::broadcast_to, {all}, {{"shape", Dims{2, 256, 3}}});
  const ValueId both = graph.add(Op::concat, {x, repeated}, {{"axis", std::int64_t{2}}});
  graph.outputs = {graph.add(Op::matmul, {both, weight(graph, {7, 5})})};
  return graph;
}

/// What lies behind each element, around the end of its row.
Graph neighbours() {
  Graph graph;
  graph.name = "neighbours";
  const ValueId x = graph.add_input("x", f32({3, 6}));
  const ValueId ahead = add_slice_along(graph, x, 1, 0, 2), behind = add_slice_along(graph, x, 1, 2, 4);
  const ValueId turned = graph.add(Op::concat, {behind, ahead}, {{"axis", std::int64_t{1}}});
  graph.outputs = {graph.add(Op::add, {x, graph.add(Op::exp, {turned})})};
  return graph;
}

/// The mean of what three models say.
Graph mean_of_models() {
  Graph graph;
  graph.name = "mean_of_models";
  std::vector<ValueId> said;
  for (const char* name : {"x", "y", "z"})
    said.push_back(reshape(graph, graph.add_input(name, f32({8, 5})), {1, 8, 5}));
  const ValueId stack = graph.add(Op::concat, said, {{"axis", std::int64_t{0}}});
  graph.outputs = {graph.add(Op::reduce_sum, {graph.add(Op::sigmoid, {stack})},
                             {{"axes", Dims{0}}, {"keepdims", std::int64_t{0}}})};
  return graph;
}

/// The greatest of many numbers, and where it is, and one share of each row.
Graph greatest() {
  Graph graph;
  graph.name = "greatest";
  const ValueId x = graph.add_input("x", f32({64, 1024}));
  graph.outputs = {graph.add(Op::reduce_max, {x}, {{"axes", Dims{0, 1}}, {"keepdims", std::int64_t{0}}}),
                   graph.add(Op::arg_max, {add_reshape(graph, graph.add(Op::sign, {x}), {64 * 1024})},
                             {{"axis", std::int64_t{0}}}),  // equal in any precision
                   graph.add(Op::gather_elements,
                             {graph.add(Op::softmax, {x}, {{"axis", std::int64_t{1}}}),
                              graph.add_constant(Tensor(DType::i64, {64, 1}))},
                             {{"axis", std::int64_t{1}}})};
  return graph;
}

TEST(PassList, IsRightWithoutAnyOneRow) {
  std::set<std::string_view> changed;
  const std::vector<std::string> names = all_names();
  const std::vector<std::string_view> known(names.begin(), names.end());
  for (const Graph& graph : {greatest(),
                             shared_heads(),
                             residual_network(),
                             encoder(1),
                             patches(),
                             signal(),
                             metaformer_blocks(),
                             pixels(),
                             bits(),
                             gradients(),
                             sums(),
                             scaled_channels(),
                             kept_statistics(),
                             one_channel(),
                             windows(),
                             read_places(),
                             pairs(),
                             members(),
                             grouped_channels(),
                             neighbours(),
                             mean_of_models(),
                             neighbouring_channels()}) {
    const std::vector<Tensor> inputs = random_inputs(graph);
    const std::vector<Tensor> expected = interpret(graph, inputs);
    for (const Setting& setting : settings()) {
      for (const std::string& name : names) {
        SCOPED_TRACE(graph.name + " without " + name + ", " + setting.name);
        PassOptions options;
        options.disabled.insert(name);
        options.check_finds = true;
        PassRunner runner(options, known);
        const Graph after = run_passes(graph, setting.precision, runner);
        const Plan plan = lower(after, setting.lowering, runner);
        ASSERT_EQ(runner.reports().size(), names.size());
        for (const PassReport& report : runner.reports()) {
          EXPECT_EQ(report.result == PassResult::disabled, report.name == name);
          if (report.result == PassResult::changed) changed.insert(report.name);
        }
        expect_near(interpret(after, inputs), expected, setting.tolerance);
        expect_near(interpret_plan(plan, inputs), interpret(after, inputs), setting.tolerance / 10);
      }
    }
  }
  const std::vector<std::string> by_states = changes_of_states();
  changed.insert(by_states.begin(), by_states.end());
  // The graphs give the rows of lowering something to do, but for those of other orders, of parts, of large products and of what
  // only some templates take; the frontend's are tested one by one elsewhere.
  for (const auto& pass : lowering_passes())
    if (pass.name != "order_rows" && pass.name != "align_rows" && pass.name != "bound_scatters" &&
        pass.name != "divide_expectations" && pass.name != "join_batches" && pass.name != "split_gates" &&
        pass.name != "extend_work")
      EXPECT_TRUE(changed.contains(pass.name)) << pass.name;
}

TEST(PassList, KeepsTheNamesAndTypesOfInputsAndOutputs) {
  for (Graph graph : {residual_network(), patches(), signal()}) {
    graph.output_names = {"first"};
    for (const Setting& setting : settings()) {
      PassRunner runner;
      const Graph after =
          runner.run(lowering_passes(), run_passes(graph, setting.precision, runner), setting.lowering);
      ASSERT_EQ(after.outputs.size(), graph.outputs.size());
      for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
        EXPECT_EQ(after.output_name(i), graph.output_name(i)) << setting.name;
        EXPECT_EQ(after.type(after.outputs[i]), graph.type(graph.outputs[i])) << setting.name;
      }
      EXPECT_EQ(after.value(after.inputs[0]).name, "image");
      EXPECT_EQ(after.type(after.inputs[0]), graph.type(graph.inputs[0]));
    }
  }
}

TEST(PassList, NamesEachRowOnce) {
  const std::vector<std::string> names = all_names();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
}

TEST(PassList, LoweringVerifiesWhatItsPassesMake) {
  Graph graph = residual_network();
  graph.value(graph.outputs[0]).type.dtype = DType::i32;  // not what its rule says
  EXPECT_THROW((void)lower(graph), InternalError);
}

}  // namespace
}  // namespace sylvite::pass_list_test

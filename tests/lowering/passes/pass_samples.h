#pragma once
// Graphs that give the rows of the pass list something to do.

#include "frontend/graph/views.h"
#include "sylvite/graph_text.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::pass_list_test {

/// Patches of an image, as a vision transformer begins: rows of 32 numbers, multiplied by two matrices each, and mixed by a
/// third one.
inline Graph patches() {
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
inline Graph signal() {
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
inline Graph pixels() {
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
inline Graph bits() {
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
inline Graph gradients() {
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
inline Graph sums() {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({70, 3, 4})), y = graph.add_input("y", f32({70, 4, 2}));
  const ValueId of = graph.add(
      Op::mul, {graph.add_input("p", f32({2, 9, 1, 16})), graph.add_input("q", f32({2, 1, 10, 16}))});
  graph.outputs = {graph.add(Op::matmul, {x, y}), graph.add(Op::cumsum, {x}, {{"axis", std::int64_t{2}}}),
                   graph.add(Op::reduce_sum, {of}, {{"axes", Dims{3}}, {"keepdims", std::int64_t{0}}}),
                   graph.add(Op::concat, {x, graph.add(Op::tanh, {x})}, {{"axis", std::int64_t{0}}})};
  return graph;
}

/// Two rows of a cache that stays between runs.
inline Graph cached() {
  return parse_graph(
      "graph cached(%rows: f32[2,4], %past: f32[8,4]) {\n"
      "  %at = constant i64[2,4] {5, 5, 5, 5, 2, 2, 2, 2}\n"
      "  %next: f32[8,4] = scatter_elements(%past, %at, %rows) {axis=0, reduction=\"none\"}\n"
      "  %sum: f32[8,1] = reduce_sum(%next) {axes=[1], keepdims=1}\n"
      "  return %sum, %next to %past\n}\n");
}

/// Attention of four heads over two of keys and values, and a gated layer whose two matrices are one.
inline Graph shared_heads() {
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
inline Graph scaled_channels() {
  Graph graph;
  graph.name = "scaled_channels";
  const ValueId x = graph.add_input("x", f32({2, 16, 6, 5})),
                scale = graph.add_input("scale", f32({1, 16, 1, 1}));
  const ValueId square = graph.add(Op::mul, {scale, scale});
  graph.outputs = {conv(graph, graph.add(Op::mul, {conv(graph, x, 16, 1), square}), 16, 1)};
  return graph;
}

/// A norm of rows whose mean and inverse deviation are results, too.
inline Graph kept_statistics() {
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
inline Graph one_channel() {
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
inline Graph windows() {
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
inline Graph grouped_channels() {
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
inline Graph neighbouring_channels() {
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
inline Graph read_places() {
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

inline Graph pairs() {
  Graph graph;
  graph.name = "pairs";
  const ValueId x = graph.add_input("x", f32({4096, 2}));
  graph.outputs = {graph.add(Op::softmax, {x}, {{"axis", std::int64_t{1}}})};
  return graph;
}

/// Channels of groups, each beside what its group sums up to.
inline Graph told_groups() {
  Graph graph;
  graph.name = "told_groups";
  const ValueId x = graph.add_input("x", f32({2, 4, 8}));
  const ValueId sum = graph.add(Op::reduce_sum, {x}, {{"axes", Dims{2}}, {"keepdims", std::int64_t{1}}});
  const ValueId told = graph.add(Op::broadcast_to, {graph.add(Op::tanh, {sum})}, {{"shape", Dims{2, 4, 8}}});
  graph.outputs = {reshape(graph, told, {2, 32})};
  return graph;
}

/// Members of a set, each beside what all have in common.
inline Graph members() {
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
inline Graph neighbours() {
  Graph graph;
  graph.name = "neighbours";
  const ValueId x = graph.add_input("x", f32({3, 6}));
  const ValueId ahead = add_slice_along(graph, x, 1, 0, 2), behind = add_slice_along(graph, x, 1, 2, 4);
  const ValueId turned = graph.add(Op::concat, {behind, ahead}, {{"axis", std::int64_t{1}}});
  graph.outputs = {graph.add(Op::add, {x, graph.add(Op::exp, {turned})})};
  return graph;
}

/// The mean of what three models say.
inline Graph mean_of_models() {
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

/// What pairs of numbers on each of many lines meet, times a number for each of the pair, summed.
inline Graph met_pairs() {
  Graph graph;
  graph.name = "met_pairs";
  Tensor at(DType::i64, {2, 32});
  for (std::int64_t i = 0; i < at.size(); ++i) at.set_int64(i, i / 32 + i % 32);
  const ValueId x = graph.add_input("x", f32({2, 8, 64, 33}));
  const ValueId met = graph.add(Op::gather, {x, graph.add_constant(at)}, {{"axis", std::int64_t{3}}});
  const ValueId product = graph.add(
      Op::mul, {transpose(graph, met, {0, 1, 3, 2, 4}), graph.add_input("shares", f32({2, 1, 2, 64, 32}))});
  graph.outputs = {graph.add(Op::reduce_sum, {product}, {{"axes", Dims{2}}, {"keepdims", std::int64_t{0}}})};
  return graph;
}

/// The greatest of many numbers, and where it is, and one share of each row.
inline Graph greatest() {
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

}  // namespace sylvite::pass_list_test

// States that grow as states with room for the longest: the graphs, and what they compute beside the growing ones.

#include "frontend/graph/capacity_form.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "frontend/graph/generalize.h"
#include "frontend/graph/interpreter.h"
#include "sylvite/graph_text.h"

namespace sylvite::capacity_form_test {
namespace {

using testing::HasSubstr;

/// A graph over past [2,length,3] and rows [2,2,3], whose first output is the next value of past.
Graph open_graph(const std::string& statements, const std::string& results, const std::string& more = "") {
  return parse_graph(
      "graph g(%past: f32[2,length,3], %rows: f32[2,2,3]" + more +
      ") where {length: 1..8} {\n  %next: f32[2,length+2,3] = concat(%past, %rows) {axis=1}\n" + statements +
      "  return %next" + results + "\n}\n");
}

Tensor numbers(const TensorType& type, int seed) {
  Tensor tensor(type.dtype, type.dims());
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    tensor.set_double(i, static_cast<double>((i * 7 + std::int64_t{seed} * 5) % 11) - 4);
  return tensor;
}

/// Runs both from length 2 on, where the past is that of the growing graph.
void expect_same(const Graph& open) {
  const Graph form = capacity_form(open, {{0, 0}}, {"length", 10, 2});
  std::vector<Tensor> states = zero_states(form);
  Tensor past(DType::f32, {2, 2, 3});
  for (std::int64_t step = 0; step < 4; ++step) {
    std::vector<Tensor> inputs = {past};
    std::vector<Tensor> wide;
    for (std::size_t i = 1; i < open.inputs.size(); ++i) {
      Dims dims;
      for (const Extent& extent : open.type(open.inputs[i]).shape)
        dims.push_back(extent.at({{"length", past.dims()[1]}}));
      inputs.push_back(numbers(make_type(DType::f32, dims), static_cast<int>(step + 1)));
      Tensor whole(DType::f32, form.type(form.inputs[i]).dims());
      const bool grows = whole.dims() != dims;  // of rank 1 here
      for (std::int64_t k = 0; k < whole.size(); ++k)
        whole.set_double(k, !grows || k < dims[0] ? inputs.back().as_double(k) : 99);
      wide.push_back(whole);
    }
    if (step == 0) {
      for (std::int64_t i = 0; i < past.size(); ++i) past.set_double(i, static_cast<double>(i % 5));
      inputs[0] = past;
      for (std::int64_t i = 0; i < past.size(); ++i)
        states[0].set_double(i / 6 * 30 + i % 6, past.as_double(i));
      states[1] = Tensor::scalar_i64(2);
    }
    const std::vector<Tensor> expected = interpret(open, inputs);
    const std::vector<Tensor> actual = interpret(form, wide, states);
    for (std::size_t i = 1; i < expected.size(); ++i) {
      ASSERT_EQ(actual.at(i - 1).type(), expected[i].type());
      for (std::int64_t k = 0; k < expected[i].size(); ++k)
        ASSERT_FLOAT_EQ(static_cast<float>(actual[i - 1].as_double(k)),
                        static_cast<float>(expected[i].as_double(k)))
            << i << " " << k << " " << graph_text(form);
    }
    past = expected[0];
  }
}

TEST(CapacityForm, AConcatBecomesAScatter) {
  const Graph form = capacity_form(open_graph("", ""), {{0, 0}}, {"length", 10, 2});
  const std::string text = graph_text(form);
  EXPECT_THAT(text, HasSubstr("%past: f32[2,10,3], %rows: f32[2,2,3], %length: i64[]"));
  EXPECT_THAT(text, HasSubstr("%next: f32[2,10,3] = scatter_elements(%past, "));
  EXPECT_THAT(text, HasSubstr("return %next to %past, "));
}

TEST(CapacityForm, FoldsSeeWhatCounts) {
  expect_same(
      open_graph("  %a: f32[2,1,3] = reduce_sum(%next) {axes=[1], keepdims=1}\n"
                 "  %e: f32[2,length+2,3] = exp(%next)\n"
                 "  %b: f32[2,1,3] = reduce_max(%e) {axes=[1], keepdims=1}\n"
                 "  %c: f32[2,1,3] = reduce_min(%e) {axes=[1], keepdims=1}\n"
                 "  %d: f32[2,1,3] = reduce_prod(%e) {axes=[1], keepdims=1}\n",
                 ", %a, %b, %c, %d"));
}

TEST(CapacityForm, ProductsOverItSeeWhatCounts) {
  const std::string statements =
      "  %t: f32[2,3,length+2] = transpose(%next) {perm=[0,2,1]}\n"
      "  %s: f32[2,2,length+2] = matmul(%rows, %t)\n"
      "  %p: f32[2,2,length+2] = softmax(%s) {axis=2}\n"
      "  %y: f32[2,2,3] = matmul(%p, %next)\n"
      "  %z: f32[2,2,3] = matmul(%s, %next)\n"
      "  %f: f32[2,length+2,3] = exp(%next)\n"
      "  %w: f32[2,2,3] = matmul(%s, %f)\n";
  expect_same(open_graph(statements, ", %y, %z, %w"));
  // After the softmax nothing behind counts, and caches are taken to be finite: no more is masked.
  const std::string text =
      graph_text(capacity_form(open_graph(statements, ", %y"), {{0, 0}}, {"length", 10, 2}));
  EXPECT_THAT(text, HasSubstr("matmul(%p, %next)"));
}

TEST(CapacityForm, AttentionHidesWhatDoesNotCount) {
  for (const std::string mask : {"", ", %m", ", %b"}) {
    expect_same(
        open_graph("  %k = constant f32[] {0.0}\n"
                   "  %b: bool[length+2] = less(%m, %k)\n"
                   "  %y: f32[2,2,3] = attention(%rows, %next, %next" +
                       mask + ") {causal=0, scale=1.0, softcap=0.0}\n",
                   ", %y", ", %m: f32[length+2]"));
  }
}

TEST(CapacityForm, SizesAreNumbersOfTheRun) {
  expect_same(
      open_graph("  %n: i64[2] = extents() {values=[length, 2*length+1]}\n"
                 "  %f: f32[2] = cast(%n) {to=\"f32\"}\n",
                 ", %f"));
}

TEST(CapacityForm, SlicesMayBeginWhereTheLengthSays) {
  expect_same(
      open_graph("  %table: f32[16,3] = iota() {axis=0, dtype=\"f32\", shape=[16,3]}\n"
                 "  %a: f32[2,3] = slice(%table) {sizes=[2,3], starts=[length,0], steps=[1,1]}\n"
                 "  %b: f32[2,1,3] = slice(%next) {sizes=[2,1,3], starts=[0,length+1,0], steps=[1,1,1]}\n"
                 "  %c: f32[2,length,3] = slice(%next) {sizes=[2,length,3], starts=[0,1,0], "
                 "steps=[1,1,1]}\n"
                 "  %d: f32[2,3] = reduce_sum(%c) {axes=[1], keepdims=0}\n"
                 "  %e: f32[2,length+2,3] = slice(%next) {sizes=[2,length+2,3], starts=[0,length+1,0], "
                 "steps=[1,-1,1]}\n"
                 "  %g: f32[2,1,3] = slice(%e) {sizes=[2,1,3], starts=[0,0,0], steps=[1,1,1]}\n",
                 ", %a, %b, %d, %g"));
}

TEST(CapacityForm, OtherConcatsGrowToo) {
  expect_same(
      open_graph("  %one = constant f32[1] {2.0}\n"
                 "  %a: f32[length+4] = concat(%one, %m, %one) {axis=0}\n"
                 "  %s: f32[] = reduce_sum(%a) {axes=[0], keepdims=0}\n"
                 "  %c: f32[length+2] = cumsum(%m) {axis=0, exclusive=0, reverse=0}\n"
                 "  %t: f32[] = reduce_sum(%c) {axes=[0], keepdims=0}\n",
                 ", %s, %t", ", %m: f32[length+2]"));
}

TEST(CapacityForm, PastsMayBeReadOtherwise) {
  expect_same(open_graph("  %s: f32[2,3] = reduce_sum(%past) {axes=[1], keepdims=0}\n", ", %s"));
}

TEST(CapacityForm, WhatCannotBeIsNamed) {
  const auto refusal = [](const Graph& graph) -> std::string {
    try {
      (void)capacity_form(graph, {{0, 0}}, {"length", 10, 2});
    } catch (const UnsupportedError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal(open_graph("  %y: f32[2,length+2,3] = exp(%next)\n", ", %y")),
              HasSubstr("output 'y' is f32[2,length+2,3]: it grows with the states, and is none"));
  EXPECT_THAT(refusal(open_graph("  %f: f32[2*length+4,3] = reshape(%next) {shape=[2*length+4,3]}\n"
                                 "  %y: f32[3] = reduce_sum(%f) {axes=[0], keepdims=0}\n",
                                 ", %y")),
              HasSubstr("regroups [2,length+2,3] as [2*length+4,3]"));
  EXPECT_THAT(
      refusal(open_graph("  %i: i64[2,1,3] = arg_max(%next) {axis=1, keepdims=1, select_last=0}\n", ", %i")),
      HasSubstr("arg_max"));
  EXPECT_THAT(refusal(parse_graph("graph g(%past: f32[length], %rows: f32[1]) where {length: 1..8} {\n"
                                  "  %next: f32[length+1] = concat(%past, %rows) {axis=0}\n"
                                  "  return %next\n}\n")),
              HasSubstr("expected 2 entries more than length"));
}

TEST(Generalize, SizesThatDifferAreLinearInTheSymbol) {
  const auto at = [](std::int64_t n) {
    return parse_graph(
        fmt::format("graph g(%x: f32[{0}]) {{\n  %c = constant i64[1] {{{2}}}\n"
                    "  %y: f32[{1}] = pad(%x) {{high=[3], interior=[], low=[0], mode=\"constant\"}}\n"
                    "  return %y, %c\n}}\n",
                    n, n + 3, 2 * n));
  };
  const Graph graph = generalize({at(1), at(4), at(6)}, "n", {1, 4, 6}, {1, 10, {}});
  EXPECT_THAT(graph_text(graph), HasSubstr("%y: f32[n+3] = pad(%x)"));
  EXPECT_THAT(graph_text(graph), HasSubstr("extents() {dtype=\"i64\", inverse=0, rank=1, values=[2*n]}"));
  const auto square = [&](std::int64_t n) {
    return parse_graph(fmt::format("graph g(%x: f32[{}]) {{\n  return %x\n}}\n", n * n));
  };
  EXPECT_THROW((void)generalize({square(1), square(2), square(3)}, "n", {1, 2, 3}, {1, 10, {}}),
               UnsupportedError);
}

}  // namespace
}  // namespace sylvite::capacity_form_test

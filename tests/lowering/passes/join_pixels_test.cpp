#include <gtest/gtest.h>

#include "frontend/graph/interpreter.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

// Convolutions of one channel to few: by pixels that lie side by side, and of volumes by windows of one column.

namespace sylvite::join_pixels_test {
namespace {

struct Case {
  Dims x, filter, strides, pads;
  bool is_taken = true;
};

Tensor numbers(const Dims& dims, int modulus) {
  Tensor result(DType::bf16, dims);
  for (std::int64_t i = 0; i < result.size(); ++i) result.set_double(i, static_cast<double>(i % modulus) - 2);
  return result;
}

Graph convolution(const Case& c) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::bf16, c.x));
  graph.outputs = {graph.add(
      Op::conv, {x, graph.add_constant(numbers(c.filter, 5)), graph.add_constant(numbers({c.filter[0]}, 3))},
      {{"strides", c.strides},
       {"pads", c.pads},
       {"dilations", Dims(c.strides.size(), 1)},
       {"groups", std::int64_t{1}}})};
  return graph;
}

void expect_same(const Graph& graph, const Graph& changed, const Dims& dims) {
  const Tensor x = numbers(dims, 7);
  const Tensor wanted = interpret(graph, {x}).at(0), got = interpret(changed, {x}).at(0);
  ASSERT_EQ(wanted.dims(), got.dims());
  for (std::int64_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(wanted.as_double(i), got.as_double(i)) << i;
}

Dims filter_dims(const Graph& graph) {
  for (const Node& node : graph.nodes())
    if (node.op == Op::conv) return graph.type(node.inputs[1]).dims();
  return {};
}

TEST(JoinPixels, KeepsTheResult) {
  const Case cases[] = {
      {{2, 1, 5, 16}, {3, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}},
      {{2, 1, 9, 24}, {4, 1, 9, 9}, {2, 1}, {4, 4, 4, 4}},
      {{1, 1, 4, 16}, {2, 1, 1, 17}, {1, 1}, {0, 8, 0, 8}},
      {{1, 1, 4, 16}, {2, 1, 2, 2}, {1, 1}, {0, 1, 1, 0}},
      {{1, 1, 4, 16}, {2, 1, 3, 9}, {1, 1}, {0, 0, 0, 0}},
      {{2, 1, 1, 75}, {40, 1, 1, 35}, {1, 1}, {0, 3, 0, 0}},  // many results of long windows, 44 of a line
      {{2, 2, 9, 24}, {1, 2, 7, 7}, {1, 1}, {3, 3, 3, 3}},    // two channels to one
      {{1, 3, 6, 40}, {2, 3, 5, 5}, {1, 1}, {2, 2, 2, 2}},
      {{1, 2, 5, 36}, {1, 2, 3, 3}, {2, 1}, {1, 1, 1, 1}},  // 36 of a line
      {{2, 1, 9, 32}, {1, 1, 7, 7}, {2, 2}, {3, 3, 3, 3}},  // windows two steps apart
      {{1, 2, 7, 33}, {1, 2, 5, 5}, {2, 2}, {2, 2, 1, 1}},
      {{1, 1, 4, 16}, {2, 1, 3, 3}, {1, 1}, {1, 0, 1, 0}, false},   // of 14 results
      {{1, 1, 4, 16}, {2, 1, 3, 3}, {1, 3}, {1, 1, 1, 1}, false},   // windows three steps apart
      {{1, 3, 4, 16}, {3, 3, 3, 3}, {1, 1}, {1, 1, 1, 1}, false},   // as many results as channels
      {{1, 2, 4, 20}, {1, 2, 7, 7}, {1, 1}, {3, 3, 3, 3}, false},   // of 20 results
      {{1, 1, 4, 16}, {64, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, false},  // many results
      {{1, 5, 4, 16}, {1, 5, 7, 7}, {1, 1}, {3, 3, 3, 3}, false},   // five channels
  };
  for (const Case& c : cases) {
    const Graph graph = convolution(c), joined = join_pixels(graph);
    EXPECT_EQ(filter_dims(joined)[1] % 8 == 0, c.is_taken);
    expect_same(graph, joined, c.x);
  }
}

TEST(PartVolumes, KeepTheResult) {
  const Case cases[] = {
      {{2, 1, 5, 6, 4}, {3, 1, 3, 3, 1}, {1, 1, 1}, {1, 1, 0, 1, 1, 0}},
      {{2, 3, 5, 6, 4}, {3, 3, 2, 3, 1}, {2, 1, 1}, {0, 1, 0, 1, 0, 0}},
      {{2, 3, 5, 6, 4}, {3, 3, 2, 3, 1}, {1, 1, 2}, {0, 1, 0, 1, 0, 0}, false},
      {{2, 1, 5, 6, 4}, {3, 1, 3, 3, 3}, {1, 1, 1}, {1, 1, 1, 1, 1, 1}, false},
      {{2, 8, 5, 6, 4}, {3, 8, 3, 3, 1}, {1, 1, 1}, {1, 1, 0, 1, 1, 0}, false},  // channels of a vector
  };
  for (const Case& c : cases) {
    const Graph graph = convolution(c), parted = part_volumes(graph);
    EXPECT_EQ(filter_dims(parted).size() == 4, c.is_taken);
    expect_same(graph, parted, c.x);
  }
}

}  // namespace
}  // namespace sylvite::join_pixels_test

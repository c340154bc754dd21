// Inputs over which their next values are written: where they lie, and with nothing of the rest copied.

#include "lowering/passes/entry_writes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/graph_builder.h"
#include "frontend/ops/op_table.h"
#include "lowering/plan/memory_plan.h"
#include "sylvite/graph_text.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::entry_writes_test {
namespace {

constexpr std::int64_t length = 12;

/// A cache of 2 x 3 x 12 x 4, two new rows of it, their places, and a spelling of the next cache; the outputs are that, and a sum of it.
struct Cache {
  Graph graph;
  GraphBuilder builder{graph};
  Sym past = builder.input("past", DType::f32, {2, 3, length, 4});
  Sym part = builder.input("part", DType::f32, {2, 3, 2, 4});
  Sym places = builder.input("places", DType::i64, {2, 1});

  void finish(const Sym& next, const std::vector<Sym>& shown = {}) {
    graph.outputs = {reduce(Op::reduce_sum, next, {2}).id(), next.id()};
    for (const Sym& each : shown) graph.outputs.push_back(each.id());
    graph.overwrites = {{0, 1}};
  }
  Sym turned_scatter(const std::string& reduction = "none") {
    const Dims forth = {2, 0, 1, 3}, back = {1, 2, 0, 3};
    const Sym scattered = builder.add(
        Op::scatter_nd, {transpose(past, forth), places, transpose(part, forth)}, {{"reduction", reduction}});
    return transpose(scattered, back);
  }
  Sym slices_around(std::int64_t start, const Sym& middle) {
    const std::int64_t stop = start + middle.dims()[2];
    return concat({slice(past, 2, 0, start), middle, slice(past, 2, stop, length)}, 2);
  }
  [[nodiscard]] std::int64_t writes() const {
    const Graph made = write_entries(graph, graph.overwrites, false);
    const std::vector<Tensor> inputs = random_inputs(graph);
    const std::vector<Tensor> wanted = interpret(graph, inputs), got = interpret(made, inputs);
    for (std::size_t i = 0; i < wanted.size(); ++i) expect_close(got[i], wanted[i]);
    expect_lowers_faithfully(graph);
    return std::ranges::count_if(made.nodes(), [](const Node& node) { return writes_in_place(node.op); });
  }
};

TEST(EntryWrites, ScattersBetweenTransposesWriteEntries) {
  Cache cache;
  cache.finish(cache.turned_scatter());
  EXPECT_EQ(cache.writes(), 1);
}

/// Indices along axes that are apart: what lies between these counts along.
TEST(EntryWrites, TuplesOfIndicesCountAlongAxesBetween) {
  for (const Dims& forth : {Dims{0, 2, 1, 3}, Dims{2, 0, 1, 3}, Dims{1, 3, 0, 2}, Dims{3, 1, 0, 2}})
    for (const Dims& leading : {Dims{2}, Dims{2, 1}}) {
      Cache cache;
      Dims back(4), given = leading, updated = leading;
      for (std::size_t d = 0; d < 4; ++d)
        back[static_cast<std::size_t>(forth[d])] = static_cast<std::int64_t>(d);
      given.push_back(2);
      for (std::size_t d = 2; d < 4; ++d)
        updated.push_back(cache.past.dims()[static_cast<std::size_t>(forth[d])]);
      const Sym indices = cache.builder.input("indices", DType::i64, given);
      const Sym updates = cache.builder.input("updates", DType::f32, updated);
      const Sym scattered =
          cache.builder.add(Op::scatter_nd, {transpose(cache.past, forth), indices, updates});
      cache.finish(transpose(scattered, back));
      EXPECT_EQ(cache.writes(), updates.size() * 4 <= cache.past.size() ? 1 : 0);
    }
}

TEST(EntryWrites, PartsBetweenSlicesAreWritten) {
  for (const std::int64_t start : {1, 5, 9}) {
    Cache cache;
    cache.finish(cache.slices_around(start, cache.part * 2.0));
    EXPECT_EQ(cache.writes(), 1);
  }
}

/// What would be wrong, or slower, is left as it is.
TEST(EntryWrites, OthersStay) {
  Cache combined;
  combined.finish(combined.turned_scatter("add"));
  EXPECT_EQ(combined.writes(), 0);
  Cache read;
  read.finish(read.turned_scatter(), {read.past * 2.0});
  EXPECT_EQ(read.writes(), 0);
  Cache shown;
  shown.finish(shown.turned_scatter(), {shown.past});
  EXPECT_EQ(shown.writes(), 0);
  Cache turned;  // the turned past is read by another node, and a slice of it
  const Sym next = turned.turned_scatter();
  const Node& back = turned.graph.node(turned.graph.value(next.id()).producer);
  const Node& scatter = turned.graph.node(turned.graph.value(back.inputs[0]).producer);
  turned.finish(next, {Sym(turned.builder, scatter.inputs[0]) * 2.0});
  EXPECT_EQ(turned.writes(), 0);
  Cache sliced;
  const Sym whole = sliced.slices_around(5, sliced.part);
  const Node& joined = sliced.graph.node(sliced.graph.value(whole.id()).producer);
  sliced.finish(whole, {Sym(sliced.builder, joined.inputs[0]) * 2.0});
  EXPECT_EQ(sliced.writes(), 0);
  Cache from_itself;
  from_itself.finish(from_itself.slices_around(3, slice(from_itself.past, 2, 0, 2) * 2.0));
  EXPECT_EQ(from_itself.writes(), 0);
  Cache large;
  large.finish(large.slices_around(2, concat({large.part, large.part}, 2)));
  EXPECT_EQ(large.writes(), 0);
}

/// The output is the input's memory, which no launch copies.
TEST(EntryWrites, NextValuesLieInTheInput) {
  Cache cache;
  cache.finish(cache.turned_scatter());
  const Plan plan = lower(cache.graph, {});
  EXPECT_EQ(root_of(plan, plan.outputs[1].buffer), plan.inputs[0].buffer);
  for (const Kernel& kernel : plan.kernels)
    for (const ValueId output : kernel.body.outputs)
      EXPECT_TRUE(kernel.body.type(output).element_count() < 2 * 3 * length * 4 ||
                  writes_in_place(kernel.body.nodes().back().op));
  Graph without = cache.graph;
  without.overwrites.clear();
  const Plan copied = lower(without, {});
  EXPECT_NE(root_of(copied, copied.outputs[1].buffer), copied.inputs[0].buffer);
}

TEST(EntryWrites, TextsTellWhatIsWrittenOver) {
  Cache cache;
  cache.finish(cache.turned_scatter());
  const std::string text = graph_text(cache.graph);
  EXPECT_NE(text.find(" over %past"), std::string::npos) << text;
  EXPECT_EQ(graph_text(parse_graph(text)), text);
  EXPECT_EQ(parse_graph(text).overwrites, cache.graph.overwrites);
}

}  // namespace
}  // namespace sylvite::entry_writes_test

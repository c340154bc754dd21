#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/graph/interpreter.h"
#include "lowering/plan/fusion.h"
#include "lowering/plan/plan.h"
#include "lowering/plan/plan_interpreter.h"
#include "tests/lowering/sample_graphs.h"

// Gathers as views of pointwise work: all on a device that has templates, a GPU, and on a CPU those that load single elements.

namespace sylvite::gather_fusion_test {
namespace {

LoweringOptions on_a_gpu() {
  LoweringOptions options;
  options.image_layout = ImageLayout::dense;
  options.refuse_template = [](const Kernel&) { return "there is none for its class"; };
  return options;
}

/// Twice as many along `axis`, each the mean of two neighbours.
ValueId doubled(Graph& graph, ValueId id, std::int64_t axis) {
  const std::int64_t extent = graph.type(id).dims().at(static_cast<std::size_t>(axis));
  ValueId sum = no_value;
  for (const std::int64_t step : {0, 1}) {
    Tensor places(DType::i64, {2 * extent});
    for (std::int64_t i = 0; i < places.size(); ++i) places.set_int64(i, std::min(i / 2 + step, extent - 1));
    const ValueId taken = graph.add(Op::gather, {id, graph.add_constant(places)}, {{"axis", axis}});
    const ValueId part = graph.add(Op::mul, {taken, scalar(graph, 0.5F)});
    sum = sum == no_value ? part : graph.add(Op::add, {sum, part});
  }
  return sum;
}

ValueId resized(Graph& graph, ValueId id) {
  return doubled(graph, doubled(graph, id, 2), 3);
}

std::size_t launches_of(const Graph& graph, const LoweringOptions& options) {
  const Plan plan = lower(graph, options);
  const std::vector<Tensor> inputs = random_inputs(graph);
  const Tensor wanted = interpret(graph, inputs).at(0), got = interpret_plan(plan, inputs).at(0);
  for (std::int64_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(wanted.as_double(i), got.as_double(i), 1e-6) << i;
  return plan.launches.size();
}

TEST(GatherFusion, AResizeIsOneKernel) {
  Graph graph;
  graph.outputs = {graph.add(Op::relu, {resized(graph, graph.add_input("x", f32({2, 3, 5, 7})))})};
  EXPECT_EQ(launches_of(graph, on_a_gpu()), 1U);
  EXPECT_GT(launches_of(graph, {}), 1U);
}

/// Rows of six values by one number for each, which a broadcast repeats along the row.
TEST(GatherFusion, NumbersOfRowsAreNotWrittenForEachElement) {
  Graph graph;
  const ValueId rows = graph.add_input("rows", make_type(DType::i64, {2, 5, 1}));
  const ValueId all = graph.add(Op::broadcast_to, {rows}, {{"shape", Dims{2, 5, 4}}});
  std::vector<Tensor> inputs(1, Tensor(DType::i64, {2, 5, 1}));
  for (std::int64_t i = 0; i < inputs[0].size(); ++i) inputs[0].set_int64(i, i * 3 % 7);
  for (int i = 0; i < 6; ++i) {
    const ValueId x = graph.add_input("x" + std::to_string(i), f32({2, 7, 4}));
    inputs.emplace_back(DType::f32, Dims{2, 7, 4});
    for (std::int64_t j = 0; j < inputs.back().size(); ++j)
      inputs.back().set_double(j, static_cast<double>(j * (i + 5) % 17));
    graph.outputs.push_back(graph.add(Op::gather_elements, {x, all}, {{"axis", std::int64_t{1}}}));
  }
  const Plan plan = lower(graph, on_a_gpu());
  EXPECT_EQ(plan.launches.size(), 6U);
  const std::vector<Tensor> wanted = interpret(graph, inputs), got = interpret_plan(plan, inputs);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    for (std::int64_t j = 0; j < wanted[i].size(); ++j)
      EXPECT_EQ(wanted[i].as_double(j), got[i].as_double(j));
}

/// Rows of channels at places of a map whose channels lie ahead of its pixels: they are turned once for many places.
TEST(GatherFusion, RowsAreTakenFromMemoryWhereTheyAreTurned) {
  const auto launches = [](std::int64_t count) {
    Graph graph;
    const ValueId x = graph.add_input("x", f32({2, 64, 512}));
    const ValueId rows = graph.add(Op::transpose, {x}, {{"perm", Dims{0, 2, 1}}});
    for (const std::int64_t step : {1, 3}) {
      Tensor places(DType::i64, {count});
      for (std::int64_t i = 0; i < places.size(); ++i) places.set_int64(i, i * step % 512);
      graph.outputs.push_back(
          graph.add(Op::gather, {rows, graph.add_constant(places)}, {{"axis", std::int64_t{1}}}));
    }
    return lower(graph, on_a_gpu()).launches.size();
  };
  EXPECT_EQ(launches(1 << 14), 3U);
  EXPECT_EQ(launches(100), 2U) << "few are read where they are";
}

TEST(GatherFusion, OneResizeIsNotComputedInAnother) {
  Graph graph;
  const ValueId small = resized(graph, graph.add_input("x", f32({2, 3, 5, 7})));
  const ValueId sum = graph.add(Op::add, {small, graph.add_input("y", f32({2, 3, 10, 14}))});
  graph.outputs = {resized(graph, sum)};
  EXPECT_EQ(launches_of(graph, on_a_gpu()), 2U);
}

TEST(GatherFusion, AFoldReadsMemory) {
  Graph graph;
  const ValueId taken = resized(graph, graph.add_input("x", f32({2, 3, 5, 7})));
  graph.outputs = {graph.add(Op::reduce_sum, {taken}, {{"axes", Dims{3}}, {"keepdims", std::int64_t{0}}})};
  EXPECT_EQ(launches_of(graph, on_a_gpu()), 2U);
}

/// The sum of the rows of a table that a text has, times a number for each, if it is so many texts.
std::size_t launches_of_bags(std::int64_t texts) {
  Graph graph;
  Tensor places(DType::i64, {texts, 6});
  for (std::int64_t i = 0; i < places.size(); ++i) places.set_int64(i, i * 7 % 50);
  const ValueId table = graph.add_input("table", f32({50, 64}));
  const ValueId rows =
      graph.add(Op::gather, {table, graph.add_constant(places)}, {{"axis", std::int64_t{0}}});
  const ValueId scaled = graph.add(Op::mul, {rows, graph.add_input("shares", f32({texts, 6, 1}))});
  graph.outputs = {graph.add(Op::reduce_sum, {scaled}, {{"axes", Dims{1}}, {"keepdims", std::int64_t{0}}})};
  return launches_of(graph, on_a_gpu());
}

TEST(GatherFusion, ManyColumnsAreFoldedWhereTheyAreGathered) {
  EXPECT_EQ(launches_of_bags(1 << 9), 1U);
  EXPECT_EQ(launches_of_bags(1 << 8), 2U) << "threads of few columns have the card idle";
}

/// The groups of a resize to `size` by `size` pixels of an image with its channels innermost, which is turned to planes.
std::vector<std::size_t> sizes_of_groups(std::int64_t channels, std::int64_t size) {
  Graph graph;
  TensorType type = f32({1, channels, size / 2, size / 2});
  type.layout.channel_block = static_cast<int>(channels);
  const ValueId large = resized(graph, graph.add_input("x", type));
  for (const Node& node : graph.nodes()) {
    TensorType& made = graph.value(node.outputs[0]).type;
    if (made.rank() == 4) made.layout.channel_block = static_cast<int>(channels);
  }
  graph.outputs = {graph.add(Op::to_layout, {large}, {{"block", std::int64_t{0}}})};
  std::vector<std::size_t> sizes;
  for (const Group& group : group_nodes(graph, no_joins(graph), on_a_gpu()))
    sizes.push_back(group.nodes.size());
  return sizes;
}

/// Along the lines of planes each thread would read single channels.
TEST(GatherFusion, StaysOutOfChangesOfLargeImagesLayouts) {
  EXPECT_THAT(sizes_of_groups(16, 256), testing::ElementsAre(10, 1));
  EXPECT_THAT(sizes_of_groups(16, 64), testing::ElementsAre(11)) << "what is small is in the caches";
  EXPECT_THAT(sizes_of_groups(8, 512), testing::ElementsAre(11)) << "so are few channels";
}

/// What trees do: a number says where to look, and what is there where to look next.
ValueId looked_up(Graph& graph, ValueId x, ValueId at) {
  Tensor table(DType::i32, {16});
  for (std::int64_t i = 0; i < 16; ++i) table.set_int64(i, i * 5 % 6);
  const ValueId word = graph.add(Op::gather, {graph.add_constant(table), at}, {{"axis", std::int64_t{0}}});
  const ValueId value = graph.add(Op::gather_elements, {x, word}, {{"axis", std::int64_t{1}}});
  const ValueId split = graph.add(Op::gather, {weight(graph, {16}), at}, {{"axis", std::int64_t{0}}});
  const ValueId holds = graph.add(Op::cast, {graph.add(Op::less, {value, split})}, {{"to", "i32"}});
  return graph.add(Op::add, {word, holds});
}

TEST(GatherFusion, LooksUpElementsOnACpu) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({2, 7}));
  const ValueId side = graph.add(Op::less, {graph.add_input("y", f32({2, 9})), scalar(graph, 0)});
  const ValueId at = graph.add(Op::cast, {side}, {{"to", "i32"}});
  graph.outputs = {looked_up(graph, x, looked_up(graph, x, at))};
  EXPECT_EQ(launches_of(graph, {}), 3U);  // where to begin, and a level each
}

TEST(GatherFusion, WorkIsNotDoneOneByOneOnACpu) {
  Graph graph;
  const ValueId sum =
      graph.add(Op::add, {graph.add_input("x", f32({2, 7})), graph.add_input("y", f32({2, 7}))});
  const ValueId side = graph.add(Op::less, {graph.add_input("z", f32({2, 9})), scalar(graph, 0)});
  const ValueId at = graph.add(Op::cast, {side}, {{"to", "i32"}});
  const ValueId taken = graph.add(Op::gather_elements, {sum, at}, {{"axis", std::int64_t{1}}});
  graph.outputs = {graph.add(Op::relu, {taken})};
  EXPECT_EQ(launches_of(graph, {}), 2U);
  EXPECT_EQ(launches_of(graph, on_a_gpu()), 1U);
}

/// Two of a resize's lines, which it blends; `at` has their places.
void add_blended_rows(Graph& graph, ValueId at) {
  std::vector<ValueId> taken;
  for (const char* const name : {"x", "y"})
    taken.push_back(
        graph.add(Op::gather, {graph.add_input(name, f32({4, 7})), at}, {{"axis", std::int64_t{0}}}));
  graph.outputs = {graph.add(Op::add, taken)};
}

TEST(GatherFusion, RowsAtKnownPlacesAreBlendedWhereTheyLieOnACpu) {
  Graph known, given;
  Tensor rows(DType::i64, {3});
  for (std::int64_t i = 0; i < 3; ++i) rows.set_int64(i, 2 - i);
  add_blended_rows(known, known.add_constant(rows));
  EXPECT_EQ(launches_of(known, {}), 1U);
  TensorType places = f32({3});
  places.dtype = DType::i64;
  add_blended_rows(given, given.add_input("at", places));
  EXPECT_EQ(launches_of(given, {}), 2U);
  EXPECT_EQ(launches_of(given, on_a_gpu()), 1U);
}

}  // namespace
}  // namespace sylvite::gather_fusion_test

// Folds of what windows meet as work on slices.

#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/pass_list.h"
#include "lowering/plan/plan_interpreter.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::slice_patches_test {
namespace {

/// The places that windows of `size` meet: a row for each place of a window, or a column.
Tensor places(std::int64_t size, std::int64_t windows, std::int64_t stride, bool as_columns) {
  Tensor result(DType::i64, as_columns ? Dims{windows, size} : Dims{size, windows});
  for (std::int64_t i = 0; i < size; ++i)
    for (std::int64_t j = 0; j < windows; ++j)
      result.set_int64(as_columns ? j * size + i : i * windows + j, i + j * stride);
  return result;
}

struct Sample {
  std::int64_t channels = 16, size = 3, stride = 1;
  bool as_columns = false;    ///< Tensor.unfold's order
  bool joins_pixels = false;  ///< and F.unfold's
  Op fold = Op::reduce_sum;
};

/// What windows of an image meet, times a number for each place of the window at each pixel, folded.
Graph folded(const Sample& sample) {
  constexpr std::int64_t images = 4, windows = 24;
  const auto [channels, size, stride, as_columns, joins_pixels, fold] = sample;
  const std::int64_t side = (windows - 1) * stride + size, taps = size * size;
  Graph graph;
  const ValueId x = graph.add_input("x", f32({images, channels, side, side}));
  const ValueId at = graph.add_constant(places(size, windows, stride, as_columns));
  const ValueId lines = graph.add(Op::gather, {x, at}, {{"axis", std::int64_t{2}}});
  const ValueId met = graph.add(Op::gather, {lines, at}, {{"axis", std::int64_t{4}}});
  const ValueId turned = transpose(graph, met, as_columns ? Dims{0, 1, 3, 5, 2, 4} : Dims{0, 1, 2, 4, 3, 5});
  const Dims pixels = joins_pixels ? Dims{windows * windows} : Dims{windows, windows};
  Dims all{images, 2, channels / 2, taps}, shares{images, 2, 1, taps};
  for (Dims* dims : {&all, &shares}) dims->insert(dims->end(), pixels.begin(), pixels.end());
  const ValueId product =
      graph.add(Op::mul, {reshape(graph, turned, all), graph.add_input("shares", f32(shares))});
  graph.outputs = {graph.add(fold, {product}, {{"axes", Dims{3}}, {"keepdims", std::int64_t{0}}})};
  return graph;
}

std::int64_t count(const Graph& graph, Op op) {
  return std::ranges::count(graph.nodes(), op, &Node::op);
}

TEST(SlicePatches, FoldsOfWindowsAreWorkOnSlices) {
  for (const Sample& sample :
       {Sample{}, Sample{.channels = 6}, Sample{.as_columns = true}, Sample{.size = 5, .joins_pixels = true},
        Sample{.fold = Op::reduce_max}, Sample{.channels = 4, .joins_pixels = true}}) {
    Sample large = sample;
    large.channels *= 6 * 4 * 4 / 16;
    const Graph graph = folded(large), after = slice_patches(graph);
    EXPECT_EQ(count(after, Op::gather), 0);
    EXPECT_EQ(count(after, sample.fold), 0);
    EXPECT_EQ(count(after, Op::slice), 2 * sample.size * sample.size);
    const std::vector<Tensor> inputs = random_inputs(graph);
    expect_close(interpret(after, inputs).at(0), interpret(graph, inputs).at(0), 1e-4);
    LoweringOptions on_a_gpu;
    on_a_gpu.image_layout = ImageLayout::channels_last;
    on_a_gpu.refuse_template = [](const Kernel&) { return "there is none"; };
    const Plan plan = lower(graph, on_a_gpu);
    EXPECT_LE(plan.launches.size(), sample.size == 3 ? 2U : 4U) << "one turns an input";
    expect_close(interpret_plan(plan, inputs).at(0), interpret(graph, inputs).at(0), 1e-4);
  }
}

TEST(SlicePatches, FewResultsManyPlacesAndStridesStay) {
  for (const Sample& sample :
       {Sample{.channels = 2}, Sample{.channels = 64, .size = 9}, Sample{.channels = 32, .stride = 2}}) {
    const Graph graph = folded(sample);
    EXPECT_TRUE(same_structure(slice_patches(graph), graph));
  }
}

}  // namespace
}  // namespace sylvite::slice_patches_test

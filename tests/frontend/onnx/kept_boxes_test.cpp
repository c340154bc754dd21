// NonMaxSuppression beside plain loops over many boxes: those of equal scores and of touching corners, too.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "frontend/graph/interpreter.h"
#include "frontend/onnx/importer.h"
#include "tests/frontend/onnx/onnx_model.h"

namespace sylvite::kept_boxes_test {
namespace {

double shared_part(const float* a, const float* b) {
  const double height = std::min(a[2], b[2]) - std::max(a[0], b[0]);
  const double width = std::min(a[3], b[3]) - std::max(a[1], b[1]);
  const double shared = std::max(height, 0.0) * std::max(width, 0.0);
  const auto area = [](const float* box) { return static_cast<double>(box[2] - box[0]) * (box[3] - box[1]); };
  const double joined = area(a) + area(b) - shared;
  return joined > 0 ? shared / joined : 0;
}

std::vector<std::int64_t> kept_by_loops(const std::vector<float>& boxes, const std::vector<float>& scores,
                                        double overlap, double least_score) {
  std::vector<std::int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) {
    return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
  });
  std::vector<std::int64_t> kept;
  for (const std::int64_t box : order) {
    if (scores[static_cast<std::size_t>(box)] <= least_score) break;
    if (std::ranges::none_of(kept, [&](std::int64_t better) {
          return shared_part(&boxes[static_cast<std::size_t>(box) * 4],
                             &boxes[static_cast<std::size_t>(better) * 4]) > overlap;
        }))
      kept.push_back(box);
  }
  return kept;
}

TEST(OnnxNonMaxSuppression, KeepsWhatPlainLoopsKeep) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> corner(0, 40);
  std::uniform_int_distribution<int> side(0, 12);
  std::uniform_int_distribution<int> step(-8, 8);
  constexpr std::int64_t count = 300;
  for (const float least_score : {-10.0F, -0.25F, 0.0F, 0.5F}) {
    std::vector<float> boxes;
    std::vector<float> scores;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto y = static_cast<float>(corner(random));
      const auto x = static_cast<float>(corner(random));
      boxes.insert(boxes.end(),
                   {y, x, y + static_cast<float>(side(random)), x + static_cast<float>(side(random))});
      scores.push_back(static_cast<float>(step(random)) * (i % 2 == 0 ? 0.125F : -0.125F));  // both zeros
    }
    onnx::ModelProto model = empty_model(13);
    onnx::GraphProto& graph = *model.mutable_graph();
    add_floats(graph, "boxes", {1, count, 4}, boxes);
    add_floats(graph, "scores", {1, 1, count}, scores);
    add_integers(graph, "most", {1000});
    add_floats(graph, "overlap", {1}, {0.25F});
    add_floats(graph, "least", {1}, {least_score});
    add_node(graph, "NonMaxSuppression", {"boxes", "scores", "most", "overlap", "least"}, {"y"});
    add_output(graph, "y");
    const Tensor y = interpret(import_onnx_bytes(model.SerializeAsString(), "", {}), {}).at(0);
    const std::vector<std::int64_t> wanted = kept_by_loops(boxes, scores, 0.25, least_score);
    ASSERT_EQ(y.dims(), (Dims{static_cast<std::int64_t>(wanted.size()), 3}));
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_EQ(static_cast<std::int64_t>(y.as_double(static_cast<std::int64_t>(3 * i + 2))), wanted[i]) << i;
  }
}

}  // namespace
}  // namespace sylvite::kept_boxes_test

#include "frontend/values/size_facts.h"

#include <gtest/gtest.h>

#include "frontend/onnx/importer.h"
#include "tests/frontend/onnx/onnx_model.h"

namespace sylvite::size_facts_test {
namespace {

Dims remainder_by_three(std::int64_t extent) {
  return decide_by_sizes("remainder by 3", {extent}, [](const Dims& all) { return Dims{all.at(0) % 3}; });
}

TEST(SizeFacts, AreKeptWhileAnImportIsNoted) {
  EXPECT_EQ(remainder_by_three(8), Dims{2});
  NotedSizeFacts outer;
  (void)remainder_by_three(4);
  {
    NotedSizeFacts inner;
    (void)remainder_by_three(9);
    EXPECT_EQ(decisions_text(inner.take()), "remainder by 3: 0\n");
  }
  const SizeFacts facts = outer.take();
  ASSERT_EQ(facts.size(), 1U);
  EXPECT_EQ(facts[0].numbers, Dims{4});
  EXPECT_EQ(facts[0].decide({11}), Dims{2});
}

/// What the import of one node decides about a line of so many elements.
std::string decisions(const std::function<void(onnx::GraphProto&)>& add, std::int64_t extent) {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {1, 1, extent});
  add(graph);
  add_output(graph, "y");
  NotedSizeFacts facts;
  (void)import_onnx_bytes(model.SerializeAsString(), "");
  return decisions_text(facts.take());
}

/// What the numbers of one node's import are, by the last of its facts.
TEST(SizeFacts, PadsFollowFromExtents) {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {1, 1, 9});
  onnx::NodeProto& node = add_node(graph, "MaxPool", {"x"}, {"y"});
  set_text(node, "auto_pad", "SAME_UPPER");
  set_integers(node, "kernel_shape", {5});
  set_integers(node, "strides", {3});
  add_output(graph, "y");
  NotedSizeFacts noted;
  (void)import_onnx_bytes(model.SerializeAsString(), "");
  const SizeFacts facts = noted.take();
  ASSERT_EQ(facts.size(), 1U);
  const std::vector<Extent> pads = facts[0].follow({Extent::symbol("n")}).numbers;
  for (std::int64_t extent = 1; extent < 20; ++extent) {
    const Dims decided = facts[0].decide({extent});
    EXPECT_EQ((Dims{pads.at(0).at({{"n", extent}}), pads.at(1).at({{"n", extent}})}), decided) << extent;
  }
}

TEST(SizeFacts, SamePadsAreOneDecision) {
  const auto pooling = [](onnx::GraphProto& graph) {
    onnx::NodeProto& node = add_node(graph, "MaxPool", {"x"}, {"y"});
    set_text(node, "auto_pad", "SAME_UPPER");
    set_integers(node, "kernel_shape", {2});
    set_integers(node, "strides", {3});
  };
  EXPECT_EQ(decisions(pooling, 8), decisions(pooling, 9));
  EXPECT_EQ(decisions(pooling, 8), decisions(pooling, 4))
      << "one element is padded, which follows from the extent";
}

TEST(SizeFacts, LastWindowsMayReachBeyond) {
  const auto pooling = [](onnx::GraphProto& graph) {
    onnx::NodeProto& node = add_node(graph, "MaxPool", {"x"}, {"y"});
    set_integer(node, "ceil_mode", 1);
    set_integers(node, "kernel_shape", {3});
    set_integers(node, "strides", {3});
  };
  EXPECT_EQ(decisions(pooling, 9), decisions(pooling, 12));
  EXPECT_EQ(decisions(pooling, 9), decisions(pooling, 10)) << "by pads, which follow from the extent";
}

TEST(SizeFacts, LastPartsMayBeShorter) {
  const auto split = [](onnx::GraphProto& graph) {
    onnx::NodeProto& node = add_node(graph, "Split", {"x"}, {"y", "z"});
    set_integer(node, "axis", 2);
    set_integer(node, "num_outputs", 2);
  };
  EXPECT_EQ(decisions(split, 8), decisions(split, 10));
  EXPECT_NE(decisions(split, 8), decisions(split, 9));
}

TEST(SizeFacts, BoundsOfSlicesMayLieBeyondTheEnd) {
  const auto slice = [](onnx::GraphProto& graph) {
    add_integers(graph, "starts", {0});
    add_integers(graph, "ends", {20});
    add_integers(graph, "axes", {2});
    add_node(graph, "Slice", {"x", "starts", "ends", "axes"}, {"y"});
  };
  EXPECT_EQ(decisions(slice, 20), decisions(slice, 31));
  EXPECT_NE(decisions(slice, 20), decisions(slice, 19));
}

TEST(SizeFacts, PixelsMayBeEvenlyApart) {
  const auto halved = [](onnx::GraphProto& graph) {
    onnx::NodeProto& pool = add_node(graph, "MaxPool", {"x"}, {"coarse"});
    set_integers(pool, "kernel_shape", {3});
    set_integers(pool, "strides", {2});
    set_integers(pool, "pads", {1, 1});
    add_node(graph, "Shape", {"coarse"}, {"sizes"});
    onnx::NodeProto& resize = add_node(graph, "Resize", {"x", "", "", "sizes"}, {"y"});
    set_text(resize, "coordinate_transformation_mode", "asymmetric");
    set_text(resize, "nearest_mode", "floor");
  };
  EXPECT_EQ(decisions(halved, 8), decisions(halved, 10));
  EXPECT_EQ(decisions(halved, 9), decisions(halved, 11));
  EXPECT_NE(decisions(halved, 8), decisions(halved, 9));
}

}  // namespace
}  // namespace sylvite::size_facts_test

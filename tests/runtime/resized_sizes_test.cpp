// Maps that are resized in models of many sizes: kernels and plans of one size are those of others.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/files.h"
#include "frontend/graph/interpreter.h"
#include "frontend/onnx/importer.h"
#include "lowering/plan/symbolic_plan.h"
#include "runtime/session.h"
#include "tests/frontend/onnx/onnx_model.h"
#include "tests/runtime/test_session.h"

namespace sylvite::resized_sizes_test {
namespace {

enum class Factor { of_sizes, of_scales, of_computed_scales };

/// Every other pixel's neighbours, of which the largest is resized by nearest neighbours to where it comes from.
std::string model_of(Factor factor) {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {1, 3, 1, 1});
  for (const auto& [axis, name] : {std::pair(0, "batch"), {2, "height"}, {3, "width"}})
    name_axis(*graph.mutable_input(0), axis, name);
  add_output(graph, "y");
  onnx::NodeProto& pool = add_node(graph, "MaxPool", {"x"}, {"coarse"});
  set_integers(pool, "kernel_shape", {3, 3});
  set_integers(pool, "strides", {2, 2});
  set_integers(pool, "pads", {1, 1, 1, 1});
  add_node(graph, "Tanh", {"coarse"}, {"work"});
  add_node(graph, "Shape", {"x"}, {"sizes"});
  if (factor == Factor::of_computed_scales) {
    add_node(graph, "Shape", {"work"}, {"before"});
    for (const char* name : {"sizes", "before"})
      set_integer(add_node(graph, "Cast", {name}, {std::string(name) + "_real"}), "to",
                  onnx::TensorProto::FLOAT);
    add_node(graph, "Div", {"sizes_real", "before_real"}, {"scales"});
  } else {
    add_floats(graph, "scales", {4}, {1, 1, 2, 2});
  }
  onnx::NodeProto& resize = factor == Factor::of_sizes
                                ? add_node(graph, "Resize", {"work", "", "", "sizes"}, {"fine"})
                                : add_node(graph, "Resize", {"work", "", "scales"}, {"fine"});
  set_text(resize, "coordinate_transformation_mode", "asymmetric");
  set_text(resize, "nearest_mode", "floor");
  add_node(graph, "Sigmoid", {"fine"}, {"y"});
  return model.SerializeAsString();
}

class ResizedSizes : public testing::TestWithParam<Factor> {
 protected:
  void SetUp() override {
    write_file(path_, model_of(GetParam()));
    options_ = test_options(folder_.path());
    options_.set["import.dims"] = "batch=1..4,height=8..40,width=8..40";
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/resized.onnx";
  CompileOptions options_;
};

bool gathers(const Plan& plan) {
  return std::ranges::any_of(plan.kernels, [](const Kernel& kernel) {
    return std::ranges::count(kernel.body.nodes(), Op::gather, &Node::op) > 0;
  });
}

TEST_P(ResizedSizes, PlansAreAlikeWhereFactorsAreWholeAndWhereTheyAreNot) {
  OpenModel open = open_model(path_, make_setup(options_));
  open.menu = nullptr;
  const Imported whole = bind_sizes(open, {2, 24, 32}), other = bind_sizes(open, {2, 27, 33});
  EXPECT_EQ(plan_structure(*whole.plan), plan_structure(*other.plan));
  EXPECT_EQ(gathers(*whole.plan), GetParam() != Factor::of_scales);
}

TEST_P(ResizedSizes, FixedSizesOfWholeFactorsLookUpNoPlaces) {
  options_.set["import.dims"] = "batch=2,height=24,width=32";
  EXPECT_FALSE(gathers(*bind_sizes(open_model(path_, make_setup(options_)), {}).plan));
}

TEST_P(ResizedSizes, RunsAreRight) {
  CompiledModel model = compile(path_, options_);
  for (const auto& [batch, height, width] :
       {std::array{2, 24, 32}, {3, 16, 40}, {4, 18, 10}, {2, 40, 8}, {2, 15, 32}, {3, 24, 31}, {4, 31, 15}}) {
    ImportOptions at;
    at.dims = {{"batch", batch}, {"height", height}, {"width", width}};
    const std::vector<Tensor> inputs{sample_tensor(DType::f32, {batch, 3, height, width})};
    expect_near(model.run(inputs).at(0), interpret(import_onnx(path_, at), inputs).at(0));
  }
}

INSTANTIATE_TEST_SUITE_P(Factors, ResizedSizes,
                         testing::Values(Factor::of_sizes, Factor::of_scales, Factor::of_computed_scales));

}  // namespace
}  // namespace sylvite::resized_sizes_test

// An If whose condition is an input, and of which one branch does not fit the model's sizes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx-ml.pb.h>

#include "base/error.h"
#include "frontend/onnx/imported_model.h"
#include "tests/frontend/onnx/onnx_model.h"

namespace sylvite::untaken_branch_test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

void add_graph(onnx::NodeProto& node, const std::string& name, const std::string& op,
               const std::vector<std::string>& inputs) {
  onnx::GraphProto& branch = set_graph(node, name);
  add_node(branch, op, inputs, {"result"});
  add_output(branch, "result");
}

/// y = condition ? x + three : -x, where the sum of 2 and 3 elements is no sum.
onnx::ModelProto model_of_one_branch() {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "condition", {}, onnx::TensorProto::BOOL);
  add_input(graph, "x", {2});
  add_floats(graph, "three", {3}, {1, 2, 3});
  add_output(graph, "y");
  onnx::NodeProto& node = add_node(graph, "If", {"condition"}, {"y"});
  add_graph(node, "then_branch", "Add", {"x", "three"});
  add_graph(node, "else_branch", "Neg", {"x"});
  return model;
}

Tensor flag(bool value) {
  Tensor tensor(DType::boolean, {});
  *static_cast<std::uint8_t*>(tensor.mutable_data()) = value ? 1 : 0;
  return tensor;
}

double first_result(const onnx::ModelProto& model, const std::vector<Tensor>& conditions) {
  std::vector<HostValue> inputs(conditions.begin(), conditions.end());
  inputs.emplace_back(Tensor::of<float>(DType::f32, {2}, {1, -2}));
  return interpret(import_model_bytes(model.SerializeAsString(), ""), inputs).at(0).tensor().as_double(0);
}

TEST(UntakenBranch, IsAnErrorOnlyInARunThatTakesIt) {
  const onnx::ModelProto model = model_of_one_branch();
  EXPECT_EQ(first_result(model, {flag(false)}), -1);
  EXPECT_THAT([&] { (void)first_result(model, {flag(true)}); },
              ThrowsMessage<InputError>(HasSubstr("If 'make_y': its then_branch cannot be run: Add")));
}

TEST(UntakenBranch, IsListedAsAStepOfTheHost) {
  const ImportedModel model = import_model_bytes(model_of_one_branch().SerializeAsString(), "");
  ASSERT_NE(model.host, nullptr);
  ASSERT_EQ(model.host->steps().size(), 1U);
  EXPECT_THAT(model.host->steps()[0].reason, HasSubstr("then_branch cannot be run"));
  EXPECT_THAT([] { (void)import_onnx_bytes(model_of_one_branch().SerializeAsString(), ""); },
              ThrowsMessage<UnsupportedError>(HasSubstr("then_branch cannot be run")));
}

/// y = outer ? (condition ? x + three : -x) : x + x
TEST(UntakenBranch, CountsOnlyWhereTheBranchAroundItIsTaken) {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "outer", {}, onnx::TensorProto::BOOL);
  add_input(graph, "condition", {}, onnx::TensorProto::BOOL);
  add_input(graph, "x", {2});
  add_floats(graph, "three", {3}, {1, 2, 3});
  add_output(graph, "y");
  onnx::NodeProto& node = add_node(graph, "If", {"outer"}, {"y"});
  onnx::GraphProto& then = set_graph(node, "then_branch");
  onnx::NodeProto& inner = add_node(then, "If", {"condition"}, {"inner"});
  add_graph(inner, "then_branch", "Add", {"x", "three"});
  add_graph(inner, "else_branch", "Neg", {"x"});
  add_output(then, "inner");
  add_graph(node, "else_branch", "Add", {"x", "x"});
  EXPECT_EQ(first_result(model, {flag(true), flag(false)}), -1);
  EXPECT_EQ(first_result(model, {flag(false), flag(false)}), 2);
  EXPECT_EQ(first_result(model, {flag(false), flag(true)}), 2);
  EXPECT_THAT([&] { (void)first_result(model, {flag(true), flag(true)}); },
              ThrowsMessage<InputError>(HasSubstr("then_branch cannot be run")));
}

TEST(UntakenBranch, NeitherFits) {
  onnx::ModelProto model = model_of_one_branch();
  onnx::NodeProto& node = *model.mutable_graph()->mutable_node(0);
  node.mutable_attribute(1)->mutable_g()->mutable_node(0)->set_op_type("NoSuchOperator");
  EXPECT_THAT([&] { (void)first_result(model, {flag(true)}); },
              ThrowsMessage<ModelError>(HasSubstr("neither branch can be imported")));
}

}  // namespace
}  // namespace sylvite::untaken_branch_test

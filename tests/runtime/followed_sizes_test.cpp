// What models make of their sizes beside extents, in plans and kernels of many sizes: how many are taken in order, the middle of what
// is sampled, parts of tables.

#include "lowering/plan/open_kernel.h"
#include "tests/frontend/onnx/onnx_model.h"
#include "tests/runtime/told_plans.h"

namespace sylvite::followed_sizes_test {
namespace {

/// A model of x[2,rows,features], whose rows are `count`, as a list of one number.
onnx::ModelProto model_of_rows(std::int64_t features) {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {2, 1, features});
  name_axis(*graph.mutable_input(0), 1, "rows");
  onnx::NodeProto& shape = add_node(graph, "Shape", {"x"}, {"count"});
  set_integer(shape, "start", 1);
  set_integer(shape, "end", 2);
  return model;
}

std::vector<Sizes> spread_sizes(std::int64_t from, std::int64_t step, int count) {
  std::vector<Sizes> all;
  for (int i = 0; i < count; ++i) all.push_back({from + i * step});
  return all;
}

TEST(FollowedSizes, AShareOfRowsIsTakenInOrder) {
  onnx::ModelProto model = model_of_rows(8);
  onnx::GraphProto& graph = *model.mutable_graph();
  for (const auto& [name, value] : {std::pair("one", 1), {"three", 3}, {"ten", 10}})
    add_integers(graph, name, {value});
  add_node(graph, "Mul", {"count", "three"}, {"thrice"});
  add_node(graph, "Div", {"thrice", "ten"}, {"share"});
  add_node(graph, "Add", {"share", "one"}, {"taken"});
  set_integer(add_node(graph, "TopK", {"x", "taken"}, {"y", "places"}), "axis", 1);
  add_output(graph, "y");
  add_output(graph, "places");
  expect_told_plans(model.SerializeAsString(), "rows=16..512", spread_sizes(17, 43, 12),
                    spread_sizes(20, 11, 40));
}

/// A signal is sampled around its pixels: how many there are, the last, and half a pixel beyond it are numbers of kernels.
TEST(FollowedSizes, MiddlesOfPixelsAreNumbersOfKernels) {
  onnx::ModelProto model = model_of_rows(8);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "grid", {2, 9, 9, 2});
  add_integers(graph, "first", {1});
  add_node(graph, "Unsqueeze", {"x", "first"}, {"images"});
  set_text(add_node(graph, "GridSample", {"images", "grid"}, {"y"}), "padding_mode", "reflection");
  add_output(graph, "y");
  expect_told_plans(model.SerializeAsString(), "rows=16..512", spread_sizes(17, 43, 12),
                    spread_sizes(20, 11, 40));
}

/// Distances between rows are the middle of a table, which weights multiply.
TEST(FollowedSizes, PartsOfTablesAreNoWeights) {
  constexpr std::int64_t most = 300, features = 16;
  onnx::ModelProto model = model_of_rows(features);
  onnx::GraphProto& graph = *model.mutable_graph();
  std::vector<float> numbers((2 * most - 1) * features);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 97) / 97;
  add_floats(graph, "table", {2 * most - 1, features}, numbers);
  add_floats(graph, "weights", {features, features}, std::vector<float>(features * features, 0.125F));
  for (const auto& [name, value] :
       {std::pair("middle", most), {"after", most - 1}, {"axis", std::int64_t{0}}})
    add_integers(graph, name, {value});
  add_node(graph, "Sub", {"middle", "count"}, {"begin"});
  add_node(graph, "Add", {"after", "count"}, {"end"});
  add_node(graph, "Slice", {"table", "begin", "end", "axis"}, {"part"});
  add_node(graph, "MatMul", {"part", "weights"}, {"rows"});
  set_integers(add_node(graph, "Transpose", {"rows"}, {"columns"}), "perm", {1, 0});
  add_node(graph, "MatMul", {"x", "columns"}, {"y"});
  add_output(graph, "y");
  expect_told_plans(model.SerializeAsString(), "rows=16..256", spread_sizes(17, 19, 12),
                    spread_sizes(20, 5, 40));

  const TemporaryFolder folder;
  const std::string path = folder.path() + "/model.onnx";
  write_file(path, model.SerializeAsString());
  CompileOptions options = test_options(folder.path());
  options.set["import.dims"] = "rows=16..256";
  OpenModel open = open_model(path, make_setup(options));
  open.menu = nullptr;
  const auto product = [&](std::int64_t rows) { return bind_sizes(open, {rows}).plan->kernels.back(); };
  EXPECT_TRUE(generalize(product(40), product(100))) << product(40).text;
}

}  // namespace
}  // namespace sylvite::followed_sizes_test

// What follows steps on the host, compiled: right at every count, with kernels of the first counts for later ones.

#include "runtime/tails.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "frontend/quick/quick.h"
#include "runtime/compiled_model.h"
#include "tests/frontend/onnx/loop_model.h"
#include "tests/runtime/test_session.h"

namespace sylvite::tails_test {
namespace {

/// Rows of x whose first element is above zero, multiplied by a matrix, and the largest of each column.
onnx::ModelProto chosen_rows() {
  onnx::ModelProto model = empty_model(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {40, 8});
  add_output(graph, "y");
  add_output(graph, "most");
  std::vector<float> weights(128);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = 0.01F * static_cast<float>(i % 37);
  add_floats(graph, "weights", {8, 16}, weights);
  add_integers(graph, "start", {0});
  add_integers(graph, "end", {1});
  add_integers(graph, "axis", {1});
  add_integers(graph, "row", {0});
  add_node(graph, "Slice", {"x", "start", "end", "axis"}, {"first"});
  add_node(graph, "Relu", {"first"}, {"positive"});
  add_node(graph, "NonZero", {"positive"}, {"places"});
  add_node(graph, "Gather", {"places", "row"}, {"rows"});
  add_node(graph, "Squeeze", {"rows", "row"}, {"list"});
  add_node(graph, "Gather", {"x", "list"}, {"chosen"});
  add_node(graph, "MatMul", {"chosen", "weights"}, {"product"});
  add_node(graph, "Relu", {"product"}, {"y"});
  add_node(graph, "ReduceMax", {"y"}, {"most"});
  set_integers(*graph.mutable_node(graph.node_size() - 1), "axes", {0});
  return model;
}

TEST(Tails, AreRightAtEveryCountAndShareKernels) {
  const TemporaryFolder folder;
  CompileOptions options = test_options(folder.path());
  options.set["compile.first_answer"] = "best";
  const auto setup = make_setup(options);
  const ImportedModel model = import_at(parse_model_proto(chosen_rows(), {""}, {}, 0), {});
  Tails tails(setup);
  const TailRunner runner = {[&](const auto& tail, const auto& inputs) { return tails.run(tail, inputs); }};
  int seed = 0;
  for (const int count : {17, 5, 40, 1, 17, 0, 23}) {
    Tensor x = sample_tensor(DType::f32, {40, 8}, ++seed);
    for (int row = 0; row < 40; ++row) x.set_double(std::int64_t{8} * row, row * 7 % 40 < count ? 1.5 : -1.5);
    const std::vector<HostValue> actual = run_model_values(
        model.host.get(), {x}, [&](const auto& given) { return interpret(model.graph, given); }, 1, runner);
    if (count == 0) continue;  // a maximum of none
    const std::vector<HostValue> expected = interpret(model, {x});
    for (std::size_t i = 0; i < expected.size(); ++i)
      expect_near(actual.at(i).tensor(), expected[i].tensor());
  }
  EXPECT_EQ(tails.size(), 2U);  // one of them for no rows
}

TEST(Tails, StepsGoOnUntilATailIsReady) {
  const TemporaryFolder folder;
  const auto setup = make_setup(test_options(folder.path()));
  const ImportedModel model = import_at(parse_model_proto(chosen_rows(), {""}, {}, 0), {});
  Tails tails(setup);
  int waited = 0, answered = 0;
  const TailRunner runner = {[&](const auto& tail, const auto& inputs) {
    std::optional<std::vector<HostValue>> outputs = tails.run(tail, inputs);
    ++(outputs ? answered : waited);
    return outputs;
  }};
  Tensor x = sample_tensor(DType::f32, {40, 8}, 1);
  x.set_double(0, 1.5);
  const std::vector<HostValue> expected = interpret(model, {x});
  const auto run = [&] {
    const std::vector<HostValue> actual = run_model_values(
        model.host.get(), {x}, [&](const auto& given) { return interpret(model.graph, given); }, 1, runner);
    for (std::size_t i = 0; i < expected.size(); ++i)
      expect_near(actual.at(i).tensor(), expected[i].tensor());
  };
  EXPECT_FALSE(tails.is_compiling());
  for (int i = 0; waited == 0 && i < 3; ++i) run();
  EXPECT_EQ(waited, 1);
  tails.wait();
  EXPECT_FALSE(tails.is_compiling());
  run();
  EXPECT_EQ(waited, 1);
  EXPECT_EQ(answered, 1);
}

TEST(Tails, AModelWaitsForThem) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/chosen_rows.onnx";
  write_file(path, chosen_rows().SerializeAsString());
  CompileOptions options = test_options(folder.path());
  options.set["compile.first_answer"] = "fast";
  CompiledModel model = compile(path, options);
  Tensor x = sample_tensor(DType::f32, {40, 8}, 1);
  x.set_double(0, 1.5);
  const std::vector<Tensor> expected = model.run({x});
  model.wait();
  // A tail is made once steps on the host have taken some time.
  for (int i = 0; !model.rep().is_compiling() && i < 100000; ++i) (void)model.run({x});
  EXPECT_TRUE(model.rep().is_compiling());
  model.wait();
  EXPECT_FALSE(model.rep().is_compiling());
  const std::vector<Tensor> actual = model.run({x});
  for (std::size_t i = 0; i < expected.size(); ++i) expect_near(actual.at(i), expected[i]);
}

/// y: x among zeros and cut again, by integers that are given: zero, below zero and above.
TEST(Tails, AreRightAtElementsOfAnySign) {
  onnx::ModelProto model = empty_model(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {6, 7});
  add_input(graph, "pads", {4}, onnx::TensorProto::INT64);
  add_input(graph, "ends", {2}, onnx::TensorProto::INT64);
  add_output(graph, "y");
  add_integers(graph, "starts", {0, 1});
  add_node(graph, "Pad", {"x", "pads"}, {"padded"});
  add_node(graph, "Slice", {"padded", "starts", "ends"}, {"part"});
  add_node(graph, "Softmax", {"part"}, {"y"});
  const TemporaryFolder folder;
  CompileOptions options = test_options(folder.path());
  options.set["compile.first_answer"] = "best";
  const auto setup = make_setup(options);
  const ImportedModel imported = import_at(parse_model_proto(model, {""}, {}, 0), {});
  Tails tails(setup);
  const TailRunner runner = {[&](const auto& tail, const auto& inputs) { return tails.run(tail, inputs); }};
  const Tensor x = sample_tensor(DType::f32, {6, 7}, 1);
  const std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>> runs[] = {
      {{1, 2, 1, 3}, {5, 6}},   {{0, 2, 0, 3}, {4, 7}},   {{1, 0, 5, 0}, {-1, -2}},
      {{2, 0, 0, 0}, {-3, -1}}, {{0, 0, 0, 0}, {-2, -3}}, {{9, 3, 4, 0}, {13, 8}}};
  for (const auto& [pads, ends] : runs) {
    const std::vector<HostValue> given = {x, Tensor::vector_i64(pads), Tensor::vector_i64(ends)};
    const std::vector<HostValue> actual = run_model_values(
        imported.host.get(), given, [&](const auto& each) { return interpret(imported.graph, each); }, 1,
        runner);
    const Tensor expected = interpret(imported, given).at(0).tensor();
    ASSERT_EQ(actual.at(0).tensor().dims(), expected.dims());
    expect_near(actual.at(0).tensor(), expected);
  }
}

TEST(Tails, BodiesOfLoopsAreCompiledOnce) {
  const TemporaryFolder folder;
  CompileOptions options = test_options(folder.path());
  options.set["compile.first_answer"] = "best";
  const auto setup = make_setup(options);
  const ImportedModel model = import_at(parse_model_proto(doubling(), {""}, {}, 0), {});
  Tails tails(setup);
  int trips = 0;
  const TailRunner runner = {[&](const auto& tail, const auto& inputs) {
    ++trips;
    return tails.run(tail, inputs);
  }};
  for (const float limit : {100.0F, 3e5F, -1.0F}) {
    const std::vector<HostValue> given = {Tensor::of(DType::f32, {3}, std::vector<float>{1, 2, 0}),
                                          Tensor::of(DType::f32, {1}, std::vector<float>{limit})};
    const std::vector<HostValue> actual = run_model_values(
        model.host.get(), given, [&](const auto& x) { return interpret(model.graph, x); }, 1, runner);
    const std::vector<HostValue> expected = interpret(model, given);
    for (std::size_t i = 0; i < expected.size(); ++i)
      expect_near(actual.at(i).tensor(), expected[i].tensor());
  }
  EXPECT_EQ(tails.size(), 1U);
  EXPECT_GT(trips, 20);
}

}  // namespace
}  // namespace sylvite::tails_test

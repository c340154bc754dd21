// Ranges of sizes that begin at none: a cache that is empty at first, a batch without boxes.

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "frontend/graph/interpreter.h"
#include "frontend/onnx/importer.h"
#include "tests/frontend/onnx/onnx_model.h"
#include "tests/runtime/test_session.h"

namespace sylvite::empty_sizes_test {
namespace {

/// Rows that attend to those of a cache and to themselves; the cache with them.
std::string attention(const Dims& x, const Dims& past, bool is_open) {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", x);
  add_input(graph, "past", past);
  if (is_open) {
    name_axis(*graph.mutable_input(0), 1, "length");
    name_axis(*graph.mutable_input(1), 1, "past");
  }
  set_integer(add_node(graph, "Concat", {"past", "x"}, {"present"}), "axis", 1);
  set_integers(add_node(graph, "Transpose", {"present"}, {"keys"}), "perm", {0, 2, 1});
  add_node(graph, "MatMul", {"x", "keys"}, {"scores"});
  set_integer(add_node(graph, "Softmax", {"scores"}, {"shares"}), "axis", -1);
  add_node(graph, "MatMul", {"shares", "present"}, {"y"});
  add_output(graph, "y");
  add_output(graph, "present");
  return model.SerializeAsString();
}

/// Work on each of some rows, what is summed of them, and products that add them up.
std::string boxes(const Dims& rows, bool is_open) {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", rows);
  if (is_open) name_axis(*graph.mutable_input(0), 0, "boxes");
  add_floats(graph, "w", {4, 24}, std::vector<float>(96, 0.125F));
  add_node(graph, "MatMul", {"x", "w"}, {"hidden"});
  add_node(graph, "Relu", {"hidden"}, {"y"});
  set_integers(add_node(graph, "Transpose", {"y"}, {"turned"}), "perm", {1, 0});
  add_node(graph, "MatMul", {"turned", "x"}, {"mixed"});
  set_integer(add_node(graph, "ReduceSum", {"x"}, {"sum"}), "keepdims", 0);
  for (const char* name : {"y", "mixed", "sum"}) add_output(graph, name);
  return model.SerializeAsString();
}

/// The logarithm of a sum of nothing, multiplied.
std::string product_of_infinity(std::int64_t rows, bool is_open) {
  onnx::ModelProto model = empty_model(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {rows, 1});
  if (is_open) name_axis(*graph.mutable_input(0), 0, "rows");
  add_input(graph, "w", {1, 49});
  set_integers(add_node(graph, "ReduceLogSumExp", {"x"}, {"log"}), "axes", {0});
  add_node(graph, "MatMul", {"log", "w"}, {"y"});
  add_output(graph, "y");
  return model.SerializeAsString();
}

class EmptySizes : public testing::Test {
 protected:
  CompiledModel compiled(const std::string& model, const std::string& dims) {
    const std::string path = folder_.path() + "/model.onnx";
    write_file(path, model);
    CompileOptions options = test_options(folder_.path());
    options.set["import.dims"] = dims;
    CompiledModel result = compile(path, options);
    result.wait();
    return result;
  }
  static void expect_right(CompiledModel& model, const std::string& fixed,
                           const std::vector<Tensor>& inputs) {
    const std::vector<Tensor> expected = interpret(import_onnx_bytes(fixed, ""), inputs),
                              found = model.run(inputs);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i].dims(), expected[i].dims());
      expect_near(found[i], expected[i]);
    }
  }

 private:
  const TemporaryFolder folder_;
};

TEST_F(EmptySizes, CachesMayBeEmpty) {
  CompiledModel model = compiled(attention({2, 1, 16}, {2, 1, 16}, true), "length=1..32@4,past=0..64");
  const auto run = [&](int length, int past) {
    SCOPED_TRACE(fmt::format("{} behind {}", length, past));
    const Dims x = {2, length, 16}, cache = {2, past, 16};
    expect_right(model, attention(x, cache, false),
                 {sample_tensor(DType::f32, x), sample_tensor(DType::f32, cache)});
  };
  for (const auto& [length, past] : {std::pair(4, 0), {4, 12}, {1, 0}, {17, 0}, {1, 1}, {5, 64}, {4, 0}})
    run(length, past);
  const int known = model.report().compiled;
  for (const auto& [length, past] : {std::pair(7, 0), {32, 0}, {2, 0}, {6, 9}}) run(length, past);
  EXPECT_EQ(model.report().compiled, known);
}

TEST_F(EmptySizes, BatchesMayBeEmpty) {
  CompiledModel model = compiled(boxes({1, 4}, true), "boxes=0..100@20");
  const int compiled_ahead = model.report().compiled;
  for (const std::int64_t count : {20, 0, 1, 100, 0, 7}) {
    SCOPED_TRACE(count);
    expect_right(model, boxes({count, 4}, false), {sample_tensor(DType::f32, {count, 4})});
  }
  EXPECT_EQ(model.report().compiled, compiled_ahead);
}

/// An infinite number that products of compiled kernels know is none that they may forget.
TEST_F(EmptySizes, LogarithmsOfNothingAreMultiplied) {
  CompiledModel model = compiled(product_of_infinity(5, true), "rows=0..16@5");
  for (const std::int64_t rows : {5, 0, 1}) {
    const std::vector<Tensor> inputs = {sample_tensor(DType::f32, {rows, 1}),
                                        sample_tensor(DType::f32, {1, 49})};
    const Tensor expected = interpret(import_onnx_bytes(product_of_infinity(rows, false), ""), inputs)[0];
    const Tensor found = model.run(inputs)[0];
    for (std::int64_t i = 0; i < expected.size(); ++i) {
      const double wanted = expected.as_double(i);
      EXPECT_THAT(found.as_double(i), testing::NanSensitiveDoubleNear(wanted, 1e-3))
          << rows << " rows, element " << i;
    }
  }
}

}  // namespace
}  // namespace sylvite::empty_sizes_test

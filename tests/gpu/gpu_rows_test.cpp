// Work along dims that do not lie innermost, and along long rows, on a GPU: against the interpreter in f32.

#include "tests/gpu/gpu_test.h"
#include "tests/runtime/test_session.h"

namespace sylvite::gpu_rows_test {
namespace {

class GpuRows : public GpuTest {
 protected:
  /// With numbers that are the same in bf16.
  void expect_as_interpreted(const Graph& graph, const Dims& dims) {
    Tensor x(DType::f32, dims);
    for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<double>(i * 7 % 17 - 8) / 8);
    const Tensor wanted = interpret(graph, {x}).at(0);
    for (const char* precision : {"f32", "bf16"}) {
      SCOPED_TRACE(precision);
      CompileOptions options = test_options(folder_.path());
      options.set["compile.device"] = "cuda";
      options.set["compile.precision"] = precision;
      Built built = build_graph(graph, options);
      expect_near(built.program.run({x}).at(0), wanted, 5e-3);
    }
  }

  TemporaryFolder folder_;
};

TEST_F(GpuRows, SoftmaxOfOuterDims) {
  for (const Op op : {Op::softmax, Op::log_softmax})
    for (std::int64_t axis = 0; axis < 3; ++axis) {
      Graph graph;
      const ValueId x = graph.add_input("x", make_type(DType::f32, {6, 70, 24}));
      graph.outputs = {graph.add(op, {x}, {{"axis", axis}})};
      SCOPED_TRACE(axis);
      expect_as_interpreted(graph, {6, 70, 24});
    }
}

TEST_F(GpuRows, RunningSums) {
  for (const Dims& dims : {Dims{2, 5000, 40}, Dims{3, 20001}})
    for (const std::int64_t exclusive : {0, 1})
      for (const std::int64_t reverse : {0, 1}) {
        Graph graph;
        const ValueId x = graph.add_input("x", make_type(DType::f32, dims));
        graph.outputs = {graph.add(
            Op::cumsum, {x}, {{"axis", std::int64_t{1}}, {"exclusive", exclusive}, {"reverse", reverse}})};
        SCOPED_TRACE(exclusive * 2 + reverse);
        expect_as_interpreted(graph, dims);
      }
}

}  // namespace
}  // namespace sylvite::gpu_rows_test

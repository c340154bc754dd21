#pragma once
// Compiling small graphs in tests: own cache folder, no database, compared with the interpreter.

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "frontend/graph/interpreter.h"
#include "runtime/session.h"
#include "schedules/space.h"
#include "tests/support/temporary_folder.h"

namespace sylvite {

inline CompileOptions test_options(const std::string& folder) {
  CompileOptions options;
  options.set = {
      {"cache.dir", folder + "/objects"}, {"db.path", folder + "/trials.db"}, {"compile.threads", "2"}};
  if (std::filesystem::exists(SYLVITE_COMMAND)) options.worker_command = SYLVITE_COMMAND;  // else: beside us
  return options;
}

inline Built build_graph(Graph graph, const CompileOptions& options) {
  const Imported imported = load_graph(std::move(graph), make_setup(options));
  return build_program(imported, choose_candidates(imported));
}

/// Chooses the heuristic point of `space` for every kernel that it takes; how many those are.
inline int choose_space(const Imported& imported, Chosen& chosen, const std::string& space) {
  const Machine& machine = imported.setup->machine;
  int taken = 0;
  for (std::size_t i = 0; i < imported.plan->kernels.size(); ++i) {
    const Kernel& kernel = imported.plan->kernels[i];
    for (const BoundSpace& candidate : spaces_for(kernel, machine)) {
      if (candidate.name != space) continue;
      chosen.choices[i].candidate = candidate.at(candidate.heuristic);
      ++taken;
    }
  }
  return taken;
}

/// Values that differ everywhere and stay small.
inline Tensor sample_tensor(DType dtype, const Dims& dims, int seed = 0) {
  Tensor tensor(dtype, dims);
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    if (is_float(dtype))
      tensor.set_double(i, std::sin(0.7 * static_cast<double>(i + std::int64_t{31} * seed)));
    else
      tensor.set_int64(i, (i * 7 + seed) % 5);
  return tensor;
}

inline void expect_near(const Tensor& actual, const Tensor& expected, double tolerance = 1e-4) {
  ASSERT_EQ(actual.type(), expected.type());
  for (std::int64_t i = 0; i < expected.size(); ++i) {
    const double wanted = expected.as_double(i);
    ASSERT_NEAR(actual.as_double(i), wanted, tolerance * (1 + std::abs(wanted))) << "element " << i;
  }
}

/// Of x, a convolution's result, which lies in blocks, called "features"; the same once more, as "again"; and x, as
/// "x_too".
inline Graph blocked_outputs() {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {1, 32, 8, 8}));
  const ValueId w = graph.add_constant(sample_tensor(DType::f32, {32, 32, 3, 3}, 1), "w");
  const Attributes attributes = {
      {"strides", Dims{1, 1}}, {"pads", Dims{0, 0, 0, 0}}, {"dilations", Dims{1, 1}}};
  const auto features = [&] { return graph.add(Op::relu, {graph.add(Op::conv, {x, w}, attributes)}); };
  graph.outputs = {features(), features(), x};
  graph.output_names = {"", "again", "x_too"};
  graph.rename(graph.outputs[0], "features");
  return graph;
}

/// Runs the graph twice and compares with the interpreter.
inline void expect_as_interpreted(const Graph& graph, const std::vector<Tensor>& inputs,
                                  double tolerance = 1e-4) {
  const TemporaryFolder folder;
  Built built = build_graph(graph, test_options(folder.path()));
  EXPECT_THAT(built.report.warnings, testing::IsEmpty());
  const std::vector<Tensor> expected = interpret(graph, inputs);
  for (int run = 0; run < 2; ++run) {
    const std::vector<Tensor> actual = built.program.run(inputs);
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) expect_near(actual[i], expected[i], tolerance);
  }
}

}  // namespace sylvite

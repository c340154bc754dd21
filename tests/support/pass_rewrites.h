#pragma once
// Graphs before and after a pass, as text, with results of both.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "frontend/graph/copy.h"
#include "frontend/graph/interpreter.h"
#include "frontend/graph/verifier.h"
#include "sylvite/graph_text.h"

namespace sylvite {

inline std::string body(const std::string& lines, const std::string& inputs) {
  return "graph g(" + inputs + ") {\n" + lines + "}\n";
}

inline std::vector<Tensor> some_inputs(const Graph& graph) {
  std::vector<Tensor> inputs;
  for (ValueId id : graph.inputs) {
    Tensor tensor(graph.type(id).dtype, graph.type(id).dims());
    for (std::int64_t i = 0; i < tensor.size(); ++i)
      tensor.set_double(i, 0.25 * static_cast<double>((i * 7) % 17) - 1.5);
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

/// By the reference interpreter; `tolerance` is relative, and absolute below 1.
inline void expect_same_results(const Graph& before, const Graph& after, double tolerance = 1e-5) {
  const std::vector<Tensor> inputs = some_inputs(before);
  const std::vector<Tensor> expected = interpret(before, inputs);
  const std::vector<Tensor> actual = interpret(after, inputs);
  ASSERT_EQ(expected.size(), actual.size());
  for (std::size_t k = 0; k < expected.size(); ++k) {
    ASSERT_EQ(expected[k].dims(), actual[k].dims());
    for (std::int64_t i = 0; i < expected[k].size(); ++i) {
      const double want = expected[k].as_double(i);
      if (std::isnan(want) && std::isnan(actual[k].as_double(i))) continue;  // rows that see nothing
      ASSERT_NEAR(want, actual[k].as_double(i), tolerance * (1.0 + std::abs(want)))
          << "output " << k << " element " << i;
    }
  }
}

struct Rewrite {
  const char* name;
  Graph (*pass)(const Graph&);
  const char* inputs;
  const char* before;
  const char* after;
  double tolerance = 1e-5;  ///< of results
};

inline void expect_rewrite(const Rewrite& rewrite) {
  const Graph before = parse_graph(body(rewrite.before, rewrite.inputs));
  const Graph wanted = parse_graph(body(rewrite.after, rewrite.inputs));
  const Graph after = rewrite.pass(before);
  verify(after);
  EXPECT_EQ(graph_text(canonical(after)), graph_text(canonical(wanted)));
  expect_same_results(before, after, rewrite.tolerance);
}

}  // namespace sylvite

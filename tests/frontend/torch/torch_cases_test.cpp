// Every operation by itself, as torch computes it: by the interpreter, as imported and after the passes.

#include "tests/support/torch_cases.h"

#include <gmock/gmock.h>

#include <set>

#include "base/error.h"
#include "frontend/graph/interpreter.h"
#include "frontend/graph/verifier.h"
#include "frontend/passes/pass_list.h"
#include "frontend/torch/torch_complex.h"
#include "frontend/torch/torch_ops.h"
#include "frontend/torch/torch_text.h"
#include "tests/support/checked_passes.h"

namespace sylvite::torch_cases_test {
namespace {

class TorchCases : public testing::TestWithParam<std::string> {};

TEST_P(TorchCases, ComputeWhatTorchComputes) {
  for (const TorchCase& test : torch_cases(GetParam())) {
    try {
      const TorchGraph imported = import_torch(test.text);
      const std::vector<Tensor> inputs = torch_inputs(imported, test);
      expect_torch_results(interpret(imported.graph, inputs), test, "interpreter");
      PassRunner runner = checked_passes();
      expect_torch_results(interpret(run_passes(imported.graph, {}, runner), inputs), test,
                           "interpreter after the passes");
    } catch (const Error& error) {
      ADD_FAILURE() << test.name << ": " << error.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, TorchCases, testing::ValuesIn(torch_families),
                         [](const auto& family) { return family.param; });

/// Those whose cases cannot be made by calling them: their results are undefined, or torch's own graphs alone have them.
const std::set<std::string> without_case = {"aten.contiguous.default",
                                            "aten.empty.memory_format",
                                            "aten.empty_like.default",
                                            "aten.empty_permuted.default",
                                            "aten.fill.Tensor",
                                            "aten.grid_sampler_3d.default",
                                            "aten.masked_fill.Tensor",
                                            "aten.matmul.default",
                                            "aten.max_pool3d_with_indices_backward.default",
                                            "aten.new_empty.default",
                                            "aten.new_empty_strided.default",
                                            "aten.upsample_bicubic2d.default",
                                            "aten.upsample_nearest3d.vec",
                                            "aten._unsafe_index_put.default",
                                            "sylvite.attention"};

TEST(TorchOps, HaveACaseEach) {
  std::set<std::string> seen;
  for (const std::string& family : torch_families)
    for (const TorchCase& test : torch_cases(family))
      for (const TorchNode& node : read_torch_text(test.text).nodes) seen.insert(node.op);
  for (const TorchOp& row : torch_ops()) {
    const std::string name(row.name);
    EXPECT_NE(seen.contains(name), without_case.contains(name)) << name;
  }
}

/// Empty ones have undefined results.
TEST(ComplexOps, HaveACaseEach) {
  std::set<std::string> seen;
  for (const TorchCase& test : torch_cases("complex"))
    for (const TorchNode& node : read_torch_text(test.text).nodes) seen.insert(node.op);
  for (const std::string_view name : complex_op_names())
    EXPECT_NE(seen.contains(std::string(name)), name.find("empty") != std::string_view::npos) << name;
}

TEST(TorchOps, AreNamedOnce) {
  std::set<std::string_view> names;
  for (const TorchOp& row : torch_ops()) EXPECT_TRUE(names.insert(row.name).second) << row.name;
}

}  // namespace
}  // namespace sylvite::torch_cases_test

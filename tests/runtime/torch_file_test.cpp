// Captured PyTorch graphs as models: what the command and the C++ interface do with a .torch file, and every operation
// through lowering and as a compiled program.

#include "runtime/torch_file.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "frontend/passes/pass_list.h"
#include "lowering/plan/plan.h"
#include "lowering/plan/plan_interpreter.h"
#include "sylvite/sylvite.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/torch_cases.h"

namespace sylvite {
namespace {

using testing::HasSubstr;

class TorchPrograms : public testing::TestWithParam<std::string> {};

TEST_P(TorchPrograms, PlansComputeWhatTorchComputes) {
  for (const TorchCase& test : torch_cases(GetParam())) {
    const TorchGraph imported = import_torch(test.text);
    const Plan plan = lower(run_passes(imported.graph));
    expect_torch_results(interpret_plan(plan, torch_inputs(imported, test)), test, "plan");
  }
}

/// All cases of a family as one text: their names differ.
std::string joined(const std::vector<TorchCase>& cases) {
  std::string inputs, nodes, results;
  for (const TorchCase& test : cases) {
    const std::size_t begin = test.text.find('(', test.text.find("\ntorch "));
    const std::size_t brace = test.text.find(") {\n", begin);
    const std::size_t end = test.text.find("  return ");
    const std::string own = test.text.substr(begin + 1, brace - begin - 1);
    if (!own.empty()) inputs += (inputs.empty() ? "" : ", ") + own;
    nodes += test.text.substr(brace + 4, end - brace - 4);
    const std::string returned = test.text.substr(end + 9, test.text.find("\n}") - end - 9);
    results += (results.empty() ? "" : ", ") + returned;
  }
  return "torch all(" + inputs + ") {\n" + nodes + "  return " + results + "\n}\n";
}

TEST_P(TorchPrograms, CompiledComputeWhatTorchComputes) {
  const std::vector<TorchCase> cases = torch_cases(GetParam());
  TorchCase all;
  for (const TorchCase& test : cases) all.inputs.insert(test.inputs.begin(), test.inputs.end());
  const TorchGraph imported = import_torch(joined(cases));
  const TemporaryFolder folder;
  CompileOptions options;
  options.set = {{"cache.dir", folder.path() + "/cache"}, {"db.path", folder.path() + "/trials.db"}};
  options.worker_command = SYLVITE_COMMAND;
  CompiledModel model = compile(imported.graph, options);
  const std::vector<Tensor> results = model.run(torch_inputs(imported, all));
  std::size_t next = 0;
  for (const TorchCase& test : cases) {
    const auto first = results.begin() + static_cast<std::ptrdiff_t>(next);
    next += test.results.size();
    ASSERT_LE(next, results.size());
    expect_torch_results({first, first + static_cast<std::ptrdiff_t>(test.results.size())}, test, "compiled");
  }
}

INSTANTIATE_TEST_SUITE_P(Families, TorchPrograms, testing::ValuesIn(torch_families),
                         [](const auto& family) { return family.param; });

constexpr const char* layer = R"(torch layer(%s0: int, %x: f32[s0,2], %w: f32[2,3] parameter) {
  %y: f32[s0,3] = aten.mm.default(%x, %w)
  return %y
}
)";

TEST(TorchFile, TakesSizesAndRandomParameters) {
  ImportOptions options;
  EXPECT_THROW((void)import_torch_file(layer, options), UsageError);
  options.dims = {{"s0", 4}};
  EXPECT_EQ(import_torch_file(layer, options).graph.inputs.size(), 2U);
  options.random_weights = true;
  const ImportedModel model = import_torch_file(layer, options);
  ASSERT_EQ(model.graph.inputs.size(), 1U);
  EXPECT_EQ(model.graph.type(model.graph.inputs[0]).to_string(), "f32[4,2]");
  options.dims = {{"s0", SizeRange(1, 4)}};
  EXPECT_THROW((void)import_torch_file(layer, options), UsageError);
}

TEST(TorchFile, SaysWhatItHolds) {
  const ModelFacts facts = torch_file_facts(layer);
  ASSERT_EQ(facts.inputs.size(), 1U);
  EXPECT_EQ(facts.inputs[0].type, "f32[s0,2]");
  EXPECT_EQ(facts.outputs.at(0).type, "f32[s0,3]");
  EXPECT_EQ(facts.weights, 1);
  EXPECT_EQ(facts.operators.at("aten.mm.default"), 1);
}

}  // namespace
}  // namespace sylvite

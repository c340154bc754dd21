#include <gtest/gtest.h>

#include <set>

#include "base/files.h"
#include "runtime/open_kernels.h"
#include "runtime/sizes_ahead.h"
#include "runtime/symbolic_plans.h"
#include "tests/runtime/attention_model.h"
#include "tests/runtime/test_session.h"
#include "tests/schedules/fixed_machines.h"

namespace sylvite::learned_kernels_test {
namespace {

/// For a card, which need not be there: nothing is compiled.
OpenModel model_for_a_card(const std::string& path, const std::string& dims, const std::string& folder) {
  CompileOptions options = test_options(folder);
  options.set["import.dims"] = dims;
  auto setup = std::make_shared<Setup>(*make_setup(options));
  setup->machine = fixed_machine("h200");
  return open_model(path, std::shared_ptr<const Setup>(std::move(setup)));
}

/// Once each class of sizes was met, kernels of all sizes are known: those of plans that others tell are open, too.
TEST(LearnedKernels, OfPlansThatAreToldAreOpen) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/attention.onnx";
  write_file(path, attention_model());
  const OpenModel model = model_for_a_card(path, "batch=1..16,sequence=8..256", folder.path());
  std::set<std::string> known;
  const auto meet = [&](const Sizes& sizes) {
    const Imported imported = bind_told_sizes(model, sizes);
    int fresh = 0;
    for (const Kernel& kernel : imported.plan->kernels) fresh += known.insert(kernel.text).second ? 1 : 0;
    return fresh;
  };
  (void)meet(first_sizes(model.parsed.sizes));
  for (const Sizes& sizes : sizes_ahead(model.parsed.sizes, true)) (void)meet(sizes);
  int told = 0;
  for (const Sizes& sizes : sizes_scattered(model.parsed.sizes, 60)) {
    told += model.plans->told_at(sizes) != nullptr ? 1 : 0;
    EXPECT_EQ(meet(sizes), 0) << sizes[0] << " " << sizes[1];
  }
  EXPECT_GT(told, 50);
}

}  // namespace
}  // namespace sylvite::learned_kernels_test

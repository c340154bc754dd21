#pragma once
// Plans at sizes that follow from plans at others.

#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "runtime/session.h"
#include "runtime/symbolic_plans.h"
#include "tests/runtime/test_session.h"

namespace sylvite {

/// Plans of `model` at sizes that follow from others are those of imports, and some follow.
inline void expect_told_plans(const std::string& model, const std::string& dims,
                              const std::vector<Sizes>& learned, const std::vector<Sizes>& asked) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/model.onnx";
  write_file(path, model);
  CompileOptions options = test_options(folder.path());
  options.set["import.dims"] = dims;
  OpenModel open = open_model(path, make_setup(options));
  open.menu = nullptr;
  SymbolicPlans plans(open.parsed.sizes);
  for (const Sizes& sizes : learned) {
    Imported imported = bind_sizes(open, sizes);
    plans.learn(sizes, imported.plan, std::move(imported.facts));
  }
  int told = 0;
  for (const Sizes& sizes : asked) {
    const auto found = plans.at(sizes, true);
    if (found == nullptr) continue;
    ++told;
    EXPECT_EQ(plan_text(*found), plan_text(*bind_sizes(open, sizes).plan)) << testing::PrintToString(sizes);
  }
  EXPECT_GT(told, static_cast<int>(asked.size()) / 2);
}

}  // namespace sylvite

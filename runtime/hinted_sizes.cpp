#include "runtime/hinted_sizes.h"

#include <vector>

#include "frontend/onnx/model_sizes.h"
#include "runtime/setup.h"

namespace sylvite {

void at_hinted_sizes(const OpenModel& model,
                     const std::function<double(const OpenModel&, const Sizes&)>& visit) {
  const std::vector<Sizes> all = hinted_sizes(model.parsed.sizes, model.setup->config.sizes_kept);
  double budget = model.setup->config.tune_budget.count();
  OpenModel limited = model;
  for (std::size_t i = 0; i < all.size(); ++i) {
    limited.setup = with_budget(model.setup, budget / static_cast<double>(all.size() - i));
    budget -= visit(limited, all[i]);
  }
}

namespace {

Family build_hinted(const OpenModel& model, const Chooser& choose, const std::stop_token& stop) {
  Family family(model);
  at_hinted_sizes(model, [&](const OpenModel& limited, const Sizes& sizes) {
    return family.add(bind_sizes(limited, sizes), choose, stop).report.tune_seconds;
  });
  (void)family.at(first_sizes(model.parsed.sizes));  // what the next run most likely needs
  return family;
}

}  // namespace

Family build_family(const OpenModel& model, const Chooser& choose, const std::stop_token& stop) {
  Family family = build_hinted(model, choose, stop);
  family.compile_ahead(stop);
  return family;
}

Family start_family(const OpenModel& model, const Chooser& choose, const std::stop_token& stop) {
  Family family = build_hinted(model, choose, stop);
  family.start_ahead();
  return family;
}

}  // namespace sylvite

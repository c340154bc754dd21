#include "cli/kernel_choice.h"

#include "base/error.h"
#include "base/nearest.h"

namespace sylvite {
namespace {

std::vector<std::size_t> kernels_that_begin(const Plan& plan, const std::string& prefix) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < plan.kernels.size(); ++i)
    if (plan.kernels[i].id.starts_with(prefix)) found.push_back(i);
  return found;
}

[[noreturn]] void refuse(const Plan& plan, const std::string& id, const std::string& origin) {
  std::vector<std::string_view> ids;
  ids.reserve(plan.kernels.size());
  for (const Kernel& kernel : plan.kernels) ids.emplace_back(kernel.id);
  throw UsageError("{}: no kernel of the model has an id that begins with '{}'{}", origin, id,
                   suggestion(id, ids));
}

}  // namespace

void add_kernel_option(Options& options, const std::string& what) {
  options.add_value("kernel", "ID", what + " (an id, or its beginning)");
}

std::vector<std::size_t> wanted_kernels(const Options& options, const Plan& plan) {
  const std::string id = options.has("kernel") ? options.value("kernel") : "";
  const std::vector<std::size_t> found = kernels_that_begin(plan, id);
  if (found.empty() && !plan.kernels.empty()) refuse(plan, id, "--kernel");
  return found;
}

std::size_t find_kernel(const Plan& plan, const std::string& id, const std::string& origin) {
  const std::vector<std::size_t> found = kernels_that_begin(plan, id);
  if (found.empty()) refuse(plan, id, origin);
  if (found.size() > 1)
    throw UsageError("{}: {} kernels of the model have an id that begins with '{}'", origin, found.size(),
                     id);
  return found.front();
}

}  // namespace sylvite

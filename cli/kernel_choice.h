#pragma once
// How people name kernels of a model: by an id, or its beginning.

#include <string>
#include <vector>

#include "cli/options.h"
#include "lowering/plan/plan.h"

namespace sylvite {

/// Adds --kernel ID; `what` it is for.
void add_kernel_option(Options& options, const std::string& what);

/// The numbers of the kernels that --kernel names, or of all. Throws UsageError, with the nearest id, when it names none.
[[nodiscard]] std::vector<std::size_t> wanted_kernels(const Options& options, const Plan& plan);

/// The number of the one kernel that `id` names. Throws UsageError, which `origin` begins, for none and for several.
[[nodiscard]] std::size_t find_kernel(const Plan& plan, const std::string& id, const std::string& origin);

}  // namespace sylvite

#include "runtime/export/shared_kernels.h"

#include <algorithm>
#include <optional>

#include "lowering/plan/merged_axes.h"
#include "lowering/plan/open_kernel.h"
#include "runtime/case_costs.h"
#include "runtime/variant_choice.h"

namespace sylvite {
void SharedKernels::find(const Sizes& sizes, const std::shared_ptr<const Plan>& plan) {
  const std::shared_ptr<const Plan> served = menu_.serve(model_, sizes, plan, machine_, lower_);
  for (const Kernel& kernel : served->kernels) {
    if (kernel.open == nullptr) continue;
    std::vector<Kernel>& known = made[skeleton(kernel)];
    std::erase_if(known, [&](const Kernel& each) { return each.text == kernel.text; });
    known.insert(known.begin(), kernel);
  }
}

void SharedKernels::vary(const std::vector<std::shared_ptr<const Plan>>& plans) {
  const std::vector<VariedKernel> kernels = menu_.cases_in(plans, machine_);
  std::vector<ChosenVariant> chosen =
      choose_variants(kernels, plans.size(), (kernels.size() + 1) / 2, machine_, [] { return false; });
  // A program serves what all its kernels do.
  std::erase_if(chosen, [&](const ChosenVariant& each) {
    return !is_as_wide(each.open, kernels.at(each.kernel).variants.front());
  });
  menu_.add_variants(kernels, chosen);
}

double SharedKernels::loss(const std::shared_ptr<const Plan>& plan,
                           const std::shared_ptr<const Plan>& other) {
  const std::shared_ptr<const Plan> own = menu_.apply(plan, machine_), others = menu_.apply(other, machine_);
  double seconds = 0, least = 0;
  for (std::size_t i = 0; i < own->launches.size(); ++i) {
    const auto number = static_cast<std::size_t>(own->launches[i].kernel);
    const Kernel& mine = own->kernels.at(number);
    const Kernel& theirs = others->kernels.at(static_cast<std::size_t>(others->launches.at(i).kernel));
    if (mine.open == nullptr || theirs.open == nullptr) continue;
    const Kernel fixed = with_merged_axes(plan->kernels.at(number));
    CaseCosts costs(fixed, machine_);
    const std::optional<double> best = costs.of(first_space(at_hints(mine), machine_));
    const std::optional<double> given = costs.of(first_space(at_hints(theirs), machine_));
    if (!best || !given) continue;
    least += *best;
    seconds += *given;
  }
  return least == 0 ? 1 : seconds / least;
}

}  // namespace sylvite

#include "runtime/matched_kernels.h"

#include <algorithm>
#include <utility>

#include "frontend/values/extents_at.h"
#include "lowering/plan/open_kernel.h"

namespace sylvite {
namespace {

/// What one kernel of a plan is in each of its samples, as kernels are shared.
using Forms = std::vector<const Kernel*>;

/// Per kernel of the plan.
std::vector<Forms> forms_of(const SymbolicPlan& plan, const std::vector<PlanSample>& samples,
                            const std::vector<std::vector<Kernel>>& shared) {
  std::vector<Forms> forms(plan.kernel_count(), Forms(samples.size()));
  for (std::size_t s = 0; s < samples.size(); ++s)
    for (std::size_t i = 0; i < samples[s].plan->launches.size(); ++i)
      forms.at(plan.kernel_of(i))[s] =
          &shared[s].at(static_cast<std::size_t>(samples[s].plan->launches[i].kernel));
  return forms;
}

/// The sizes of `open` at those samples whose kernel it is for.
std::vector<Dims> sizes_at_samples(const Kernel& open, const Forms& forms) {
  std::vector<Dims> sizes;
  for (const Kernel* form : forms)
    if (std::optional<Dims> found = sizes_of_case(open, *form)) sizes.push_back(*std::move(found));
  return sizes;
}

}  // namespace

std::optional<MatchedKernels> MatchedKernels::of(const std::vector<FitSymbol>& symbols,
                                                 const SymbolicPlan& plan,
                                                 const std::vector<PlanSample>& samples,
                                                 const std::vector<Extent>& said, const KernelMenu& menu,
                                                 const Machine& machine) {
  std::vector<std::vector<Kernel>> shared;
  shared.reserve(samples.size());
  for (const PlanSample& sample : samples) shared.push_back(forms_to_share(*sample.plan, machine));
  ExtentFit fit(symbols, sizes_of(samples));
  for (const Extent& each : said) fit.suggest(each);
  suggest_extents(samples, fit);
  MatchedKernels result;
  for (const Forms& forms : forms_of(plan, samples, shared)) {
    auto& [matches, has_others] = result.matches_.emplace_back();
    for (const auto& variants : menu.alike(*forms[0])) {
      const std::vector<Dims> sizes = sizes_at_samples(variants->first(), forms);
      has_others = has_others || (!sizes.empty() && sizes.size() < forms.size());
      if (sizes.size() < forms.size()) continue;
      std::optional<std::vector<Extent>> expressions = fit.of_each(sizes);
      if (!expressions) return std::nullopt;
      matches.push_back({variants, *std::move(expressions)});
    }
  }
  return result;
}

std::optional<Kernel> MatchedKernels::at(std::size_t number, const SymbolValues& sizes,
                                         const Machine& machine, const IsCompiled& preferred) const {
  for (const auto& [variants, expressions] : matches_.at(number).matches)
    if (std::optional<Kernel> found = variants->case_at(extents_at(expressions, sizes), machine, preferred))
      return found;
  return std::nullopt;
}

const std::vector<Extent>* MatchedKernels::numbers_of(std::size_t number, const Kernel& kernel) const {
  for (const auto& [variants, expressions] : matches_.at(number).matches)
    if (variants->has(kernel)) return &expressions;
  return nullptr;
}

}  // namespace sylvite

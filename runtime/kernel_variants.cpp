#include "runtime/kernel_variants.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "lowering/algorithms/algorithm.h"
#include "lowering/plan/open_kernel.h"
#include "runtime/case_costs.h"
#include "schedules/cuda/candidate.h"

namespace sylvite {
namespace {

/// Whether a case of an open kernel can be launched: templates know it at each size.
bool can_launch(const Kernel& kernel, const Candidate& candidate) {
  try {
    (void)cuda_template_of(kernel, candidate);
    return true;
  } catch (const UnsupportedError&) {
    return false;
  }
}

}  // namespace

DefaultChoice default_choice(const Kernel& kernel, const Machine& machine) {
  const BoundSpace space = spaces_for(kernel, machine).front();
  DefaultChoice choice{space.at(space.heuristic), space.name, space.heuristic};
  if (cuda_template_of(kernel, choice.candidate)) return choice;
  Algorithm algorithm = build_algorithm(kernel, choice.candidate.form);
  choice.candidate.schedule.apply(algorithm);
  return choice;
}

const DefaultChoice& KernelVariants::Variant::chosen(const Machine& machine) {
  if (!choice) choice = default_choice(kernel, machine);
  return *choice;
}

/// What choices should take for one kernel of fixed sizes, which must outlive it.
class KernelVariants::Estimates {
 public:
  Estimates(const Kernel& fixed, const Machine& machine)
      : fixed_(fixed), machine_(machine), costs_(fixed, machine) {}

  /// nullopt where there is no estimate.
  [[nodiscard]] std::optional<double> of(const DefaultChoice& choice) {
    if (machine_.gpu) return cuda_seconds_of(fixed_, choice.candidate, *machine_.gpu);
    return costs_.of(choice.space, choice.point);
  }

 private:
  const Kernel& fixed_;
  const Machine& machine_;
  CaseCosts costs_;
};

namespace {

/// How far these sizes are from those that an open kernel's schedule was chosen for: in powers of two, all of them.
double distance_of(const Kernel& open, const Dims& sizes) {
  double distance = 0;
  std::size_t number = 0;
  for (const auto& [name, info] : open.open->symbols.table) {
    const double hint = static_cast<double>(info.hints.empty() ? info.low : info.hints[0]);
    distance += std::abs(std::log2((static_cast<double>(sizes.at(number++)) + 1) / (hint + 1)));
  }
  return distance;
}

}  // namespace

KernelVariants::KernelVariants(Kernel open) {
  add(std::move(open));
}

bool KernelVariants::has_case(const Kernel& kernel) const {
  return as_case(all_.front().kernel, kernel).has_value();
}

bool KernelVariants::has(const Kernel& kernel) const {
  return std::ranges::any_of(all_, [&](const Variant& each) { return each.kernel.open == kernel.open; });
}

bool KernelVariants::has_text(const std::string& text) const {
  return std::ranges::any_of(all_, [&](const Variant& each) { return each.kernel.text == text; });
}

std::vector<double> KernelVariants::costs_of(const std::vector<Variant*>& variants, const Kernel& kernel,
                                             const Dims& sizes, const Machine& machine) {
  constexpr double none = std::numeric_limits<double>::max();
  Estimates estimates(kernel, machine);
  std::vector<double> costs;
  costs.reserve(variants.size());
  for (Variant* each : variants) costs.push_back(estimates.of(each->chosen(machine)).value_or(none));
  if (!machine.gpu || std::ranges::find(costs, none) == costs.end()) return costs;
  for (std::size_t i = 0; i < costs.size(); ++i) costs[i] = distance_of(variants[i]->kernel, sizes);
  return costs;
}

std::vector<KernelVariants::Variant*> KernelVariants::ranked(const Kernel& kernel, const Dims& sizes,
                                                             const Machine& machine,
                                                             const IsCompiled& is_compiled) {
  if (all_.size() == 1) return {&all_.front()};
  std::vector<Variant*> fitting, others;
  for (Variant& each : all_) {
    const bool is_for_it = is_as_wide(each.kernel, first()) || sylvite::case_at(each.kernel, sizes);
    (is_for_it ? fitting : others).push_back(&each);
  }
  const std::vector<double> costs = costs_of(fitting, kernel, sizes, machine);
  std::vector<std::tuple<bool, double, Variant*>> rated;
  rated.reserve(fitting.size());
  for (std::size_t i = 0; i < fitting.size(); ++i)
    rated.emplace_back(is_compiled && !is_compiled(fitting[i]->kernel.text), costs[i], fitting[i]);
  std::ranges::stable_sort(
      rated, {}, [](const auto& each) { return std::pair(std::get<bool>(each), std::get<double>(each)); });
  std::vector<Variant*> variants;
  variants.reserve(all_.size());
  for (const auto& each : rated) variants.push_back(std::get<Variant*>(each));
  variants.insert(variants.end(), others.begin(), others.end());
  return variants;
}

KernelVariants::Variant& KernelVariants::best(const Kernel& kernel, const Machine& machine) {
  return *ranked(kernel, *sizes_of_case(first(), kernel), machine, nullptr).front();
}

std::optional<Kernel> KernelVariants::case_at(const Dims& sizes, const Machine& machine,
                                              const IsCompiled& is_compiled) {
  return fastest(sylvite::case_at(first(), sizes), machine, is_compiled);
}

std::optional<Kernel> KernelVariants::case_of(const Kernel& kernel, const Machine& machine,
                                              const IsCompiled& is_compiled) {
  return fastest(as_case(first(), kernel), machine, is_compiled);
}

std::optional<Kernel> KernelVariants::fastest(const std::optional<Kernel>& of_first, const Machine& machine,
                                              const IsCompiled& is_compiled) {
  if (!of_first) return std::nullopt;
  const Dims& sizes = of_first->sizes;
  Kernel fixed = *of_first;
  fixed.open = nullptr;
  for (Variant* each : ranked(fixed, sizes, machine, is_compiled)) {
    std::optional<Kernel> result = each == &all_.front() ? of_first : sylvite::case_at(each->kernel, sizes);
    if (result && (!machine.gpu || can_launch(*result, each->chosen(machine).candidate))) return result;
  }
  return std::nullopt;
}

double KernelVariants::seconds(const Kernel& kernel, const Machine& machine) {
  return Estimates(kernel, machine).of(best(kernel, machine).chosen(machine)).value_or(0);
}

void KernelVariants::vary(const Kernel& kernel, const Machine& machine, double least_gain) {
  // Templates of a GPU compile soon, and tiles that do not fit leave much of it idle.
  const std::size_t most = machine.gpu ? 12 : 6;
  const double clearly = machine.gpu ? 1.03 : 1.04;
  if (all_.size() >= most) return;
  Variant& shared = best(kernel, machine);
  const Kernel of_first = *as_case(first(), kernel);
  std::vector<Kernel> others = {hinted_here(of_first)};
  if (!machine.gpu) others.push_back(narrowed_here(of_first));
  std::optional<Variant> fastest;
  try {
    Estimates estimates(kernel, machine);
    const std::optional<double> before = estimates.of(shared.chosen(machine));
    std::optional<double> least = before;
    for (Kernel& other : others) {
      if (has_text(other.text)) continue;
      Variant own{std::move(other), {}};
      const std::optional<double> after = estimates.of(own.chosen(machine));
      const bool are_known = before && after;
      if (are_known ? *before < clearly * *after || *before - *after < least_gain || *least <= *after
                    : !machine.gpu || own.chosen(machine).candidate == shared.chosen(machine).candidate)
        continue;
      log_line(LogLevel::debug, "kernel {}: {:.1f} us, {:.1f} us by {}", shared.kernel.id,
               before.value_or(0) * 1e6, after.value_or(0) * 1e6, own.kernel.id);
      least = after;
      fastest = std::move(own);
    }
  } catch (const UnsupportedError&) {
    return;
  } catch (const CompileError&) {
    return;
  }
  if (fastest) all_.push_back(*std::move(fastest));
}

void KernelVariants::keep_if(const IsCompiled& is_wanted) {
  const auto is_kept = [&](const Variant& each) { return is_wanted(each.kernel.text); };
  const auto is_wide = [&, widest = all_.front().kernel](const Variant& each) {
    return is_as_wide(each.kernel, widest);
  };
  if (std::ranges::none_of(all_, is_kept)) return;
  std::ranges::stable_partition(all_, is_wide);
  const bool has_wide =
      std::ranges::any_of(all_, [&](const Variant& each) { return is_wide(each) && is_kept(each); });
  std::vector<Variant> kept;
  for (Variant& each : all_)
    if (is_kept(each) || (!has_wide && kept.empty())) kept.push_back(std::move(each));
  all_ = std::move(kept);
}

std::vector<std::string> KernelVariants::texts() const {
  std::vector<std::string> texts;
  texts.reserve(all_.size());
  for (const Variant& each : all_) texts.push_back(each.kernel.text);
  return texts;
}

std::vector<Kernel> KernelVariants::kernels() const {
  std::vector<Kernel> kernels;
  kernels.reserve(all_.size());
  for (const Variant& each : all_) kernels.push_back(each.kernel);
  return kernels;
}

}  // namespace sylvite

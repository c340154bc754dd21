#include "runtime/kernel_variants.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/log.h"
#include "lowering/algorithms/algorithm.h"
#include "lowering/plan/open_kernel.h"
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

std::optional<double> KernelVariants::Variant::seconds(const Kernel& fixed, const Machine& machine) {
  const DefaultChoice& own = chosen(machine);
  const auto row = std::ranges::find(space_table(), own.space, &Space::name);
  if (row == space_table().end()) return std::nullopt;
  const Binding binding = row->bind(fixed, machine);
  const bool has_point = binding.refusal.empty() && binding.space.parameters.size() == own.point.size();
  if (!has_point || !binding.space.cost) return std::nullopt;
  return binding.space.cost(own.point);
}

KernelVariants::KernelVariants(Kernel open) {
  add(std::move(open));
}

bool KernelVariants::has_case(const Kernel& kernel) const {
  return as_case(all_.front().kernel, kernel).has_value();
}

KernelVariants::Variant& KernelVariants::best(const Kernel& kernel, const Machine& machine,
                                              const IsCompiled& is_compiled) {
  if (all_.size() == 1) return all_.front();
  return *std::ranges::min_element(all_, {}, [&](Variant& each) {
    const bool waits = is_compiled && !is_compiled(each.kernel.text);
    return std::pair(waits, each.seconds(kernel, machine).value_or(std::numeric_limits<double>::max()));
  });
}

std::optional<Kernel> KernelVariants::find_case(const Kernel& kernel, const Machine& machine,
                                                const IsCompiled& is_compiled) {
  std::optional<Kernel> result = as_case(all_.front().kernel, kernel);
  if (!result) return std::nullopt;
  Variant& found = best(kernel, machine, is_compiled);
  if (&found != &all_.front()) result = as_case(found.kernel, kernel);
  if (machine.gpu && !can_launch(*result, found.chosen(machine).candidate)) return kernel;
  return result;
}

double KernelVariants::seconds(const Kernel& kernel, const Machine& machine) {
  return best(kernel, machine).seconds(kernel, machine).value_or(0);
}

void KernelVariants::vary(const Kernel& kernel, const Machine& machine, double least_gain) {
  constexpr std::size_t most = 3;
  constexpr double clearly = 1.15;
  if (all_.size() == most) return;
  Variant& shared = best(kernel, machine);
  Variant own{hinted_here(*as_case(shared.kernel, kernel)), {}};
  if (own.kernel.text == shared.kernel.text) return;
  try {
    const std::optional<double> before = shared.seconds(kernel, machine);
    const std::optional<double> after = own.seconds(kernel, machine);
    if (!before || !after || *before < clearly * *after || *before - *after < least_gain) return;
    log_line(LogLevel::debug, "kernel {}: {:.1f} us, {:.1f} us by {}", shared.kernel.id, *before * 1e6,
             *after * 1e6, own.kernel.id);
  } catch (const UnsupportedError&) {
    return;
  } catch (const CompileError&) {
    return;
  }
  all_.push_back(std::move(own));
}

void KernelVariants::keep_if(const IsCompiled& is_wanted) {
  const auto is_kept = [&](const Variant& each) { return is_wanted(each.kernel.text); };
  if (std::ranges::any_of(all_, is_kept)) std::erase_if(all_, std::not_fn(is_kept));
}

std::vector<std::string> KernelVariants::texts() const {
  std::vector<std::string> texts;
  texts.reserve(all_.size());
  for (const Variant& each : all_) texts.push_back(each.kernel.text);
  return texts;
}

}  // namespace sylvite

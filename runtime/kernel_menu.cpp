#include "runtime/kernel_menu.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/rounding.h"
#include "lowering/algorithms/algorithm.h"
#include "lowering/plan/one_line.h"
#include "lowering/plan/open_kernel.h"
#include "schedules/cuda/candidate.h"
#include "schedules/space.h"

namespace sylvite {
namespace {

BoundSpace default_space(const Kernel& kernel, const Machine& machine) {
  return spaces_for(kernel, machine).front();
}

/// Why a kernel cannot be made for the sizes of `open`: a template whose text depends on them, or a schedule that needs
/// numbers or does not apply. Else it has the space's heuristic `candidate`.
std::string refusal_of(const Kernel& open, const BoundSpace& space, Candidate& candidate) {
  try {
    candidate = space.at(space.heuristic);
    if (cuda_template_of(open, candidate)) return "";
    Algorithm algorithm = build_algorithm(open, candidate.form);
    candidate.schedule.apply(algorithm);
  } catch (const UnsupportedError& error) {
    return error.what();
  } catch (const CompileError& error) {
    return error.what();
  }
  return "";
}

/// Why one kernel for all sizes would be slower than one for each, or cannot be made; empty when neither is so, and then it
/// has `candidate`. REQUIRES `open` at its hints, those of `fixed`; `other` is the second of its two cases.
std::string refusal(const Kernel& open, const Kernel& fixed, const Kernel& other, const Machine& machine,
                    Candidate& candidate) {
  const BoundSpace space = default_space(open, machine);
  const std::string wanted = default_space(fixed, machine).name;
  if (space.name != wanted)
    return fmt::format("it would have a schedule of '{}', with fixed sizes it has one of '{}'", space.name,
                       wanted);
  const std::optional<Kernel> second = as_case(open, other);
  return refusal_of(second ? *second : open, space, candidate);
}

/// Whether a case of an open kernel can be launched: templates know it at each size.
bool can_launch(const Kernel& kernel, const Candidate& candidate, const Machine& machine) {
  if (!machine.gpu) return true;
  try {
    (void)cuda_template_of(kernel, candidate);
    return true;
  } catch (const UnsupportedError&) {
    return false;
  }
}

/// Those of `beside`, but the least of each range that somebody gave: of these on, kernels of images shall serve. Equal sizes
/// differ there.
Sizes least_sizes(const ModelSizes& model, const Sizes& sizes, const Sizes& beside) {
  Sizes least = beside;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const SizeRange& range = model.symbols[i].range;
    const auto equal = std::count(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(i), sizes[i]);
    const std::int64_t size =
        round_up(std::max<std::int64_t>(range.low, 2), range.multiple) + equal * range.multiple;
    if (!model.symbols[i].is_guessed && size < sizes[i]) least[i] = size;
  }
  return least;
}

/// The kernels of a plan, each in the form that serves the most sizes.
std::vector<Kernel> forms_to_share(const Plan& plan, const Machine& machine) {
  if (machine.gpu) return plan.kernels;
  std::vector<Kernel> forms;
  forms.reserve(plan.kernels.size());
  for (const Kernel& kernel : plan.kernels) forms.push_back(in_one_line(kernel));
  return forms;
}

bool has_images(const Plan& plan) {
  return std::ranges::any_of(plan.buffers,
                             [](const Buffer& buffer) { return buffer.type.layout.channel_block > 1; });
}

/// Sizes to compare with, the most telling first: all differ, or, where two names must be of one size, equal ones stay equal.
std::vector<Sizes> comparisons(const ModelSizes& model, const Sizes& sizes, const Sizes& beside) {
  Sizes with_equal = beside;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto first = static_cast<std::size_t>(std::ranges::find(sizes, sizes[i]) - sizes.begin());
    if (model.symbols[i].range.contains(beside[first])) with_equal[i] = beside[first];
  }
  std::vector<Sizes> all;
  if (beside != sizes) all.push_back(beside);
  if (with_equal != beside) all.push_back(with_equal);
  return all;
}

Sizes with_two_for_one(const ModelSizes& model, Sizes sizes) {
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] == 1 && model.symbols[i].range.contains(2)) sizes[i] = 2;
  return sizes;
}

}  // namespace

KernelMenu::Seen* KernelMenu::Entry::find(const Kernel& kernel) {
  const auto found =
      std::ranges::find_if(seen, [&](const Seen& each) { return each.kernel.text == kernel.text; });
  return found == seen.end() ? nullptr : &*found;
}

std::optional<KernelMenu::Open> KernelMenu::Entry::find_case(const Kernel& kernel) const {
  for (const Open& each : open)
    if (std::optional<Kernel> found = as_case(each.kernel, kernel))
      return Open{std::move(*found), each.candidate};
  return std::nullopt;
}

void KernelMenu::learn(const Plan& plan, const Machine& machine) {
  learn_forms(forms_to_share(plan, machine), machine);
}

void KernelMenu::learn_forms(const std::vector<Kernel>& forms, const Machine& machine) {
  constexpr std::int64_t plans_kept = 8;
  ++plans_;
  std::vector<std::pair<Entry*, Seen>> unknown;
  for (const Kernel& kernel : forms) {
    Entry& entry = entries_[skeleton(kernel)];
    if (Seen* const seen = entry.find(kernel)) {
      seen->plan = plans_;
      seen->is_settled = true;
    } else if (!entry.find_case(kernel)) {
      unknown.emplace_back(&entry, Seen{kernel, plans_});
    }
  }
  for (auto& [entry, seen] : unknown) seen.is_settled = !entry->compare(seen.kernel, plans_, machine);
  // Only now: kernels of one plan differ in what the model is, not in its sizes.
  for (auto& [entry, seen] : unknown) {
    entry->seen.push_back(std::move(seen));
    entry->forget_before(plans_ - plans_kept);
  }
}

bool KernelMenu::Entry::compare(const Kernel& kernel, std::int64_t plan, const Machine& machine) {
  // The same place of the model at other sizes: the kernel that differs in the fewest extents.
  if (find_case(kernel)) return true;  // one that another kernel of this plan brought
  std::optional<Kernel> closest;
  const Seen* other = nullptr;
  const Sharing sharing = machine.gpu ? Sharing::on_device : Sharing::on_host;
  for (const Seen& each : seen) {
    std::optional<Kernel> joined = generalize(each.kernel, kernel, sharing);
    if (!joined || (closest && closest->sizes.size() <= joined->sizes.size())) continue;
    closest = std::move(joined);
    other = &each;
  }
  if (!closest) return true;
  if (const auto found = refused.find(closest->text); found != refused.end()) {
    found->second = plan;
    return false;
  }
  Candidate candidate;
  const std::string reason = refusal(*closest, other->kernel, kernel, machine, candidate);
  log_line(LogLevel::debug, "kernel {}: {} {}", closest->id,
           reason.empty() ? "is open" : "is not open:", reason);
  if (reason.empty())
    open.push_back({std::move(*closest), std::move(candidate)});
  else
    refused[closest->text] = plan;
  return reason.empty();
}

void KernelMenu::Entry::forget_before(std::int64_t plan) {
  std::erase_if(seen, [&](const Seen& each) { return each.plan < plan; });
  std::erase_if(refused, [&](const auto& each) { return each.second < plan; });
}

bool KernelMenu::is_settled(const std::vector<Kernel>& forms) {
  return std::ranges::all_of(forms, [&](const Kernel& kernel) {
    Entry& entry = entries_[skeleton(kernel)];
    const Seen* const seen = entry.find(kernel);
    return (seen != nullptr && seen->is_settled) || entry.find_case(kernel);
  });
}

std::shared_ptr<const Plan> KernelMenu::serve(
    const ModelSizes& model, const Sizes& sizes, const std::shared_ptr<const Plan>& plan,
    const Machine& machine, const std::function<std::shared_ptr<const Plan>(const Sizes&)>& lower) {
  const std::vector<Kernel> forms = forms_to_share(*plan, machine);
  learn_forms(forms, machine);
  const Sizes beside = sizes_beside(model, sizes);
  // Kernels of images serve one and many; the others are compared where what is one stays one.
  std::vector<Sizes> others = {with_two_for_one(model, beside)};
  if (others[0] != beside) others.push_back(beside);
  if (!machine.gpu && has_images(*plan)) others.insert(others.begin(), least_sizes(model, sizes, others[0]));
  for (const Sizes& other : others) {
    for (const Sizes& each : comparisons(model, sizes, other)) {
      if (is_settled(forms)) break;
      try {
        learn(*lower(each), machine);
        break;
      } catch (const Error& error) {
        log_line(LogLevel::info, "sizes: none to compare with {}: {}", describe(model, sizes), error.what());
      }
    }
  }
  return with_open(*plan, forms, machine);
}

std::shared_ptr<const Plan> KernelMenu::apply(const std::shared_ptr<const Plan>& plan,
                                              const Machine& machine) const {
  return with_open(*plan, forms_to_share(*plan, machine), machine);
}

std::shared_ptr<const Plan> KernelMenu::with_open(const Plan& plan, const std::vector<Kernel>& forms,
                                                  const Machine& machine) const {
  auto result = std::make_shared<Plan>(plan);
  for (std::size_t i = 0; i < forms.size(); ++i) {
    const auto entry = entries_.find(skeleton(forms[i]));
    if (entry == entries_.end()) continue;
    std::optional<Open> found = entry->second.find_case(forms[i]);
    if (found && can_launch(found->kernel, found->candidate, machine))
      result->kernels[i] = std::move(found->kernel);
  }
  return result;
}

}  // namespace sylvite

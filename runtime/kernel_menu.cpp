#include "runtime/kernel_menu.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "lowering/algorithms/algorithm.h"
#include "lowering/plan/open_kernel.h"
#include "schedules/space.h"

namespace sylvite {
namespace {

std::string default_space(const Kernel& kernel, const Machine& machine) {
  return spaces_for(kernel, machine).front().name;
}

/// Why one kernel for all sizes would be slower than one for each, or cannot be made; empty when neither is so.
std::string refusal(const Kernel& open, const Kernel& fixed, const Machine& machine) {
  const std::string wanted = default_space(fixed, machine);
  if (const std::string space = default_space(open, machine); space != wanted)
    return fmt::format("it would have a schedule of '{}', with fixed sizes it has one of '{}'", space,
                       wanted);
  try {
    const Candidate candidate = default_candidate(open, machine);
    Algorithm algorithm = build_algorithm(open, candidate.form);
    candidate.schedule.apply(algorithm);
  } catch (const UnsupportedError& error) {
    return error.what();
  } catch (const CompileError& error) {
    return error.what();
  }
  return "";
}

std::optional<Kernel> find_case(const std::vector<Kernel>& open, const Kernel& kernel) {
  for (const Kernel& each : open)
    if (std::optional<Kernel> found = as_case(each, kernel)) return found;
  return std::nullopt;
}

}  // namespace

void KernelMenu::learn(const Plan& plan, const Machine& machine) {
  std::vector<const Kernel*> unknown;
  for (const Kernel& kernel : plan.kernels) {
    const Entry& entry = entries_[skeleton(kernel)];
    const auto is_it = [&](const Kernel& each) { return each.text == kernel.text; };
    if (std::ranges::none_of(entry.seen, is_it) && !find_case(entry.open, kernel)) unknown.push_back(&kernel);
  }
  for (const Kernel* kernel : unknown) entries_[skeleton(*kernel)].compare(*kernel, machine);
  // Only now: kernels of one plan differ in what the model is, not in its sizes.
  for (const Kernel* kernel : unknown) entries_[skeleton(*kernel)].seen.push_back(*kernel);
}

void KernelMenu::Entry::compare(const Kernel& kernel, const Machine& machine) {
  // The same place of the model at other sizes: the kernel that differs in the fewest extents.
  std::optional<Kernel> closest;
  const Kernel* other = nullptr;
  for (const Kernel& each : seen) {
    std::optional<Kernel> joined = generalize(each, kernel);
    if (!joined || (closest && closest->sizes.size() <= joined->sizes.size())) continue;
    closest = std::move(joined);
    other = &each;
  }
  if (!closest || std::ranges::find(refused, closest->text) != refused.end()) return;
  const std::string reason = refusal(*closest, *other, machine);
  log_line(LogLevel::debug, "kernel {}: {} {}", closest->id,
           reason.empty() ? "is open" : "is not open:", reason);
  if (reason.empty())
    open.push_back(std::move(*closest));
  else
    refused.push_back(closest->text);
}

std::shared_ptr<const Plan> KernelMenu::serve(
    const ModelSizes& model, const Sizes& sizes, const std::shared_ptr<const Plan>& plan,
    const Machine& machine, const std::function<std::shared_ptr<const Plan>(const Sizes&)>& lower) {
  learn(*plan, machine);
  Sizes classes;
  classes.reserve(sizes.size());
  for (const std::int64_t size : sizes) classes.push_back(size_class(size).low);
  if (classes_.insert(classes).second) {
    try {
      learn(*lower(sizes_beside(model, sizes)), machine);
    } catch (const Error& error) {
      log_line(LogLevel::info, "sizes: none to compare with {}: {}", describe(model, sizes), error.what());
    }
  }
  return apply(plan);
}

std::shared_ptr<const Plan> KernelMenu::apply(const std::shared_ptr<const Plan>& plan) const {
  auto result = std::make_shared<Plan>(*plan);
  for (Kernel& kernel : result->kernels) {
    const auto entry = entries_.find(skeleton(kernel));
    if (entry == entries_.end()) continue;
    if (std::optional<Kernel> found = find_case(entry->second.open, kernel)) kernel = std::move(*found);
  }
  return result;
}

}  // namespace sylvite

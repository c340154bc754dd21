#include "runtime/export/join_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "frontend/values/size_table.h"
#include "lowering/algorithms/algorithm.h"
#include "lowering/plan/merged_axes.h"
#include "lowering/plan/open_kernel.h"
#include "lowering/plan/symbolic_plan.h"
#include "schedules/space.h"

namespace sylvite {
namespace {

/// Can the first schedule of the open kernel be made?
bool is_buildable(const Kernel& open, const Machine& machine) {
  try {
    const BoundSpace space = spaces_for(open, machine).front();
    const Candidate candidate = space.at(space.heuristic);
    Algorithm algorithm = build_algorithm(open, candidate.form);
    candidate.schedule.apply(algorithm);
    return true;
  } catch (const UnsupportedError&) {
    return false;
  } catch (const CompileError&) {
    return false;
  }
}

/// Any size is taken, and none of what may be none, as pads and where slices begin.
Kernel without_ranges(const Kernel& open) {
  Kernel result = open;
  auto graph = std::make_shared<Graph>(*open.open);
  for (auto& [name, info] : graph->symbols.table)
    info = {std::min<std::int64_t>(info.low, 1), INT64_MAX, info.hints};
  result.open = std::move(graph);
  return result;
}

/// The kernel as a case of the open one, whatever the sizes that it may have.
std::optional<Kernel> as_any_case(const Kernel& open, const Kernel& relaxed, const Kernel& kernel) {
  std::optional<Kernel> found = as_case(relaxed, kernel);
  if (found) found->open = open.open;
  return found;
}

/// nullopt where one is no case of `open`.
std::optional<std::vector<Kernel>> cases_of(const Kernel& open, const std::vector<const Kernel*>& kernels) {
  const Kernel relaxed = without_ranges(open);
  std::vector<Kernel> cases;
  for (const Kernel* kernel : kernels) {
    std::optional<Kernel> found = as_any_case(open, relaxed, *kernel);
    if (!found) return std::nullopt;
    cases.push_back(std::move(*found));
  }
  return cases;
}

/// Different kernels of a launch, one at each of the sizes, as cases of a new one, which joins the `known`.
std::optional<std::vector<Kernel>> joined_kernels(const std::vector<const Kernel*>& kernels,
                                                  const std::vector<std::size_t>& group,
                                                  std::vector<Kernel>& known, const Machine& machine) {
  const Kernel& first = *kernels[group[0]];
  const auto try_joined = [&](const std::optional<Kernel>& open) -> std::optional<std::vector<Kernel>> {
    std::optional<std::vector<Kernel>> cases = open ? cases_of(*open, kernels) : std::nullopt;
    if (!cases || !is_buildable(*open, machine)) return std::nullopt;
    known.push_back(*open);
    return cases;
  };
  for (const std::size_t other : group)
    if (auto cases = try_joined(generalize(first, *kernels[other]))) return cases;
  // Where all of the group are equal, what is open is seen beside others.
  for (const Kernel* other : kernels)
    if (auto cases = try_joined(generalize(first, *other, Sharing::of_first))) return cases;
  return std::nullopt;
}

/// The kernel of a launch at each of the sizes.
std::optional<std::vector<Kernel>> kernels_of_launch(const std::vector<const Kernel*>& kernels,
                                                     const std::vector<std::size_t>& group, OpenKernels& made,
                                                     const Machine& machine) {
  std::vector<Kernel> merged;
  merged.reserve(kernels.size());
  std::vector<const Kernel*> forms;
  forms.reserve(kernels.size());
  for (const Kernel* kernel : kernels)
    forms.push_back(machine.gpu ? kernel : &merged.emplace_back(with_merged_axes(*kernel)));
  // One that was made before, where there is such.
  const Kernel& first = *forms[group[0]];
  std::vector<Kernel>& known = made[skeleton(first)];
  for (const Kernel& open : known)
    if (as_case(open, first))
      if (auto cases = cases_of(open, forms)) return cases;
  const auto is_equal = [&](const Kernel* kernel) { return kernel->text == kernels[0]->text; };
  if (std::ranges::all_of(kernels, is_equal)) return std::vector<Kernel>(kernels.size(), *kernels[0]);
  return joined_kernels(forms, group, known, machine);
}

void check_structure(const Plan& plan, const Plan& greatest) {
  if (const std::string difference = difference_of(plan, greatest); !difference.empty())
    throw UnsupportedError("the model has other {}", difference);
  const auto fits = [](const Buffer& a, const Buffer& b) { return a.type.byte_size() <= b.type.byte_size(); };
  if (!std::ranges::equal(plan.buffers, greatest.buffers, fits))
    throw UnsupportedError("the model has other values between its kernels");
}

/// Then the library has the table of each size.
bool have_one_rule(const Tensor& a, const Tensor& b) {
  const TableReadings one = readings_of(a), other = readings_of(b);
  return one != nullptr && other != nullptr && std::ranges::any_of(*one, [&](const TableReading& reading) {
           return std::ranges::find(*other, reading.rule, &TableReading::rule) != other->end();
         });
}

void check_weights(const Plan& plan, const Plan& greatest) {
  if (plan.weights.size() != greatest.weights.size()) throw UnsupportedError("the model has other weights");
  for (std::size_t i = 0; i < plan.weights.size(); ++i) {
    const Tensor& largest = greatest.weights[i];
    const Tensor& other = plan.weights[i];
    if (!begins(largest, other) && !have_one_rule(largest, other) && !is_leading_block(largest, other))
      throw UnsupportedError("a table of the model, {}, is another one at other sizes",
                             largest.type().to_string());
  }
}

}  // namespace

void check_alike(const std::vector<std::shared_ptr<const Plan>>& plans, const Plan& greatest) {
  for (const auto& plan : plans) {
    check_structure(*plan, greatest);
    check_weights(*plan, greatest);
  }
}

std::vector<Plan> join_plans(const std::vector<std::shared_ptr<const Plan>>& plans, const Plan& greatest,
                             const std::vector<std::size_t>& group, OpenKernels& made,
                             const Machine& machine) {
  std::vector<Plan> cases;
  for (const auto& plan : plans) {
    Plan& added = cases.emplace_back(*plan);
    added.kernels.clear();
    for (std::size_t i = 0; i < added.weights.size(); ++i)
      if (begins(greatest.weights[i], added.weights[i])) added.weights[i] = greatest.weights[i];
    for (std::size_t i = 0; i < added.buffers.size(); ++i)
      added.buffers[i].offset = greatest.buffers[i].offset;
    added.arena_bytes = greatest.arena_bytes;
    added.state_bytes = greatest.state_bytes;
  }
  std::map<std::vector<std::string>, std::int32_t> known;
  for (std::size_t launch = 0; launch < greatest.launches.size(); ++launch) {
    std::vector<const Kernel*> kernels;
    std::vector<std::string> texts;
    for (const auto& plan : plans) {
      kernels.push_back(&plan->kernels.at(static_cast<std::size_t>(plan->launches[launch].kernel)));
      texts.push_back(kernels.back()->text);
    }
    const auto [found, is_new] = known.try_emplace(texts, static_cast<std::int32_t>(cases[0].kernels.size()));
    for (Plan& plan : cases) plan.launches[launch].kernel = found->second;
    if (!is_new) continue;
    std::optional<std::vector<Kernel>> joined = kernels_of_launch(kernels, group, made, machine);
    if (!joined) throw UnsupportedError("'{}' has a kernel for each size", greatest.launches[launch].name);
    for (std::size_t i = 0; i < cases.size(); ++i) cases[i].kernels.push_back(std::move((*joined)[i]));
  }
  return cases;
}

std::string kernel_classes(const Plan& plan) {
  std::string text;
  for (const Launch& launch : plan.launches)
    text += classes_text(plan.kernels.at(static_cast<std::size_t>(launch.kernel))) + '\n';
  return text;
}

}  // namespace sylvite

#include "runtime/alike_programs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "lowering/plan/plan_loops.h"
#include "runtime/kernel_menu.h"
#include "runtime/program_code.h"
#include "runtime/program_numbers.h"
#include "runtime/symbolic_plans.h"

namespace sylvite {
namespace {

constexpr std::size_t most_forms = 64;
constexpr std::size_t most_sizes = 64;  // of a form
constexpr std::size_t most_spares = 8;  // likewise

std::vector<double> logs_of(const Sizes& sizes) {
  std::vector<double> logs;
  logs.reserve(sizes.size());
  for (const std::int64_t size : sizes) logs.push_back(std::log2(static_cast<double>(size + 1)));
  return logs;
}

/// Which of two schedules is the better one seldom changes within a factor of two. Beyond it: infinite.
double distance(const std::vector<double>& one, const std::vector<double>& other) {
  double sum = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    const double apart = std::abs(one[i] - other[i]);
    if (apart > 1 + 1e-9) return std::numeric_limits<double>::infinity();
    sum += apart;
  }
  return sum;
}

}  // namespace

bool have_kernels_alike(const Plan& one, const Plan& other) {
  const auto texts_of = [](const Plan& plan) {
    std::vector<std::string_view> texts;  // of each trip: one of them may be unrolled
    for_each_launch(plan, [&](std::size_t launch, std::int64_t) {
      texts.emplace_back(plan.kernels.at(static_cast<std::size_t>(plan.launches[launch].kernel)).text);
    });
    return texts;
  };
  return texts_of(one) == texts_of(other);
}

void AlikePrograms::note(const OpenModel& model, const Sizes& sizes, const Built& built) {
  std::shared_ptr<const SymbolicPlan> told_by = model.plans->told_at(sizes);
  const std::int64_t generation = model.menu->generation();
  const auto is_alike = [&](const Form& form) {
    return form.told_by == told_by && have_kernels_alike(*form.code->plan, built.program.plan_alike());
  };
  if (const auto known = std::ranges::find_if(forms_, is_alike); known != forms_.end()) {
    if (known->generation != generation) known->best_at.clear();  // beside fewer kernels
    known->generation = generation;
    if (known->best_at.size() == most_sizes) known->best_at.erase(known->best_at.begin());
    known->best_at.push_back(logs_of(sizes));
    return;
  }
  const std::shared_ptr<const ProgramCode>& code = built.program.code();
  auto numbers = model.plans->numbers_of(sizes, code->plan, built.program.bindings(),
                                         model.setup->config.lowering_reuse_memory);
  if (numbers == nullptr) return;
  if (forms_.size() == most_forms) forms_.erase(forms_.begin());
  forms_.push_back({std::move(told_by),
                    generation,
                    code,
                    std::move(numbers),
                    built.choices,
                    built.report.kernels,
                    {logs_of(sizes)}});
}

void AlikePrograms::retire(Program program) {
  const auto takes = [&](const Form& form) {
    return form.code == program.code() && !form.code->options.on_device && form.spares.size() < most_spares;
  };
  if (const auto form = std::ranges::find_if(forms_, takes); form != forms_.end())
    form->spares.push_back(std::move(program));
}

/// nullopt where its kernels do not serve the sizes.
std::optional<Program> AlikePrograms::program_of(Form& form, const Sizes& sizes, const Relatives& relatives) {
  auto make_plan = [numbers = form.numbers, sizes] { return numbers->plan_at(sizes); };
  if (!form.spares.empty()) {
    std::optional<Program> spare = std::move(form.spares.back());
    form.spares.pop_back();
    const auto change = [&](Bindings& bindings) { return form.numbers->change(bindings, sizes); };
    return spare->rebind(change, std::move(make_plan)) ? std::move(spare) : std::nullopt;
  }
  std::optional<Bindings> bindings = form.numbers->at(sizes);
  if (!bindings) return std::nullopt;
  return Program(form.code, *std::move(bindings), std::move(make_plan), relatives);
}

std::optional<Built> AlikePrograms::at(const OpenModel& model, const Sizes& sizes,
                                       const Relatives& relatives) {
  if (forms_.empty() || relatives.programs.empty()) return std::nullopt;
  const double start = steady_seconds();
  const std::shared_ptr<const SymbolicPlan> told_by = model.plans->told_at(sizes);
  if (told_by == nullptr) return std::nullopt;
  for (Form* form : near(sizes, told_by, model.menu->generation())) {
    try {
      std::optional<Program> program = program_of(*form, sizes, relatives);
      if (!program) continue;
      CompileReport report;
      report.kernels = form->launches;
      report.unique_kernels = static_cast<int>(form->code->plan->kernels.size());
      report.loaded_from_cache = report.unique_kernels;
      report.ready_seconds = steady_seconds() - start;
      return Built{model.setup, nullptr, std::nullopt, form->choices, *std::move(program), std::move(report)};
    } catch (const UnsupportedError&) {
      continue;  // a kernel of a GPU that cannot be launched there
    }
  }
  return std::nullopt;
}

/// The nearest first.
std::vector<AlikePrograms::Form*> AlikePrograms::near(const Sizes& sizes,
                                                      const std::shared_ptr<const SymbolicPlan>& told_by,
                                                      std::int64_t generation) {
  std::vector<std::pair<double, Form*>> found;
  const SizeLogs logs = logs_of(sizes);
  for (Form& form : forms_) {
    if (form.told_by != told_by || form.generation != generation) continue;
    double least = std::numeric_limits<double>::infinity();
    for (const SizeLogs& each : form.best_at) least = std::min(least, distance(each, logs));
    if (std::isfinite(least)) found.emplace_back(least, &form);
  }
  std::ranges::stable_sort(found, {}, [](const auto& each) { return each.first; });
  std::vector<Form*> forms;
  forms.reserve(found.size());
  for (const auto& [apart, form] : found) forms.push_back(form);
  return forms;
}

}  // namespace sylvite

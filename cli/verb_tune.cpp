#include <optional>

#include "base/interrupt.h"
#include "base/table.h"
#include "cli/model_options.h"
#include "cli/verb.h"
#include "runtime/report.h"

namespace sylvite {
namespace {

/// Launches of each kernel of the plan.
std::vector<int> launch_counts(const Plan& plan) {
  std::vector<int> counts(plan.kernels.size());
  for (const Launch& launch : plan.launches) ++counts[static_cast<std::size_t>(launch.kernel)];
  return counts;
}

std::string kernel_table(const Plan& plan, const std::vector<Choice>& choices) {
  const std::vector<int> launches = launch_counts(plan);
  Table table({"kernel", "class", "launches", "median us", "form", "from"});
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    const Choice& choice = choices[i];
    table.add_row({plan.kernels[i].id, std::string(kernel_class_name(plan.kernels[i].kind)),
                   std::to_string(launches[i]),
                   choice.median_us > 0 ? fmt::format("{:.1f}", choice.median_us) : "-",
                   choice.candidate.form.to_string(), std::string(source_name(choice.source))});
  }
  return table.to_string();
}

/// One combination of sizes, whose winners are shown.
CompileReport tune_at(const Options& options, const OpenModel& model, const Sizes& sizes) {
  const Imported imported = load(model, sizes);
  Chosen chosen = choose(imported);
  if (interrupt_signal() == 0) {
    Built built = build_program(imported, std::move(chosen));
    chosen = {std::move(built.choices), std::move(built.report)};
  }
  print_warnings(chosen.report);
  const std::string at = describe(model.parsed.sizes, sizes);
  say(options, (at.empty() ? "" : at + ": ") + summary_line(imported.path, chosen.report) +
                   kernel_table(*imported.plan, chosen.choices));
  return chosen.report;
}

/// Every combination of sizes to be fast at, until a signal ends it.
CompileReport tune_sizes(const Options& options, const OpenModel& opened) {
  std::optional<CompileReport> total;
  at_hinted_sizes(opened, [&](const OpenModel& model, const Sizes& sizes) {
    if (total && interrupt_signal() != 0) return 0.0;
    const CompileReport report = tune_at(options, model, sizes);
    if (total) {
      add_report(*total, report);
      total->sizes = ++total->programs;
    } else {
      total = report;
      count_reading(model, *total);
    }
    return report.tune_seconds;
  });
  return *total;
}

}  // namespace

int verb_tune(std::span<const std::string> arguments) {
  Options options(
      "tune MODEL.onnx [OPTION ...]",
      "Measures candidates for every kernel within the budget and stores the winners. A second run goes on\n"
      "from the stored trials; with --set tune.extend=false it measures only what has no winner yet.");
  options.add_model_options();
  if (!options.parse(arguments)) return 0;
  CompileOptions wanted = compile_options(options, "max-autotune");
  wanted.set.emplace("tune.extend", "true");  // whoever says `tune` again wants more of it
  const OpenModel model = open(options, wanted);
  const CompileReport report = tune_sizes(options, model);
  if (options.has("json")) write_json(options, report_json(load(model), report, std::nullopt));
  end_if_interrupted();
  return 0;
}

}  // namespace sylvite

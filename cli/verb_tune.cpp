#include <algorithm>
#include <optional>
#include <utility>

#include "autotune/confirm.h"
#include "base/clock.h"
#include "base/interrupt.h"
#include "base/json_text.h"
#include "base/table.h"
#include "base/words.h"
#include "cli/model_options.h"
#include "cli/verb.h"
#include "lowering/plan/plan_loops.h"
#include "runtime/build.h"
#include "runtime/hinted_sizes.h"
#include "runtime/lock.h"
#include "runtime/report.h"
#include "schedules/space.h"

namespace sylvite {
namespace {

std::string kernel_table(const Plan& plan, const std::vector<Choice>& choices) {
  const std::vector<std::int64_t> launches = kernel_counts(plan);
  Table table({"kernel", "class", "launches", "median us", "form", "from"});
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    const Choice& choice = choices[i];
    table.add_row({plan.kernels[i].id, std::string(kernel_class_name(plan.kernels[i].kind)),
                   std::to_string(launches[i]), time_text(choice.median_us),
                   choice.candidate.form.to_string(), std::string(source_name(choice.source))});
  }
  return table.to_string();
}

/// What the tuning of a model came to.
struct Outcome {
  std::optional<double> before_ms;  ///< of a run with default schedules; nothing when it was not measured
  double after_ms = 0;              ///< of a run with what was chosen, in turns with the others
  int kernels = 0;
  int changed = 0;  ///< something else than the default was chosen
  int better = 0;   ///< of these, measured
  int untried = 0;  ///< without a time
};

/// Median times of whole runs with default schedules and with `built`, in turns.
void measure_gain(const Imported& imported, Built& built, Outcome& outcome) {
  constexpr double most_seconds = 2;
  constexpr double share_of_budget = 0.05;
  const double seconds = std::min(most_seconds, share_of_budget * imported.setup->config.tune_budget.count());
  Built plain = build_program(imported, choose_each(imported, [&](const Kernel& kernel) -> Choice {
                                return {default_candidate(kernel, imported.setup->machine)};
                              }));
  const std::vector<Tensor> inputs = zero_inputs(*imported.plan);
  const auto run = [&](Program& program) {
    const double start = steady_seconds();
    (void)program.run(inputs);
    return (steady_seconds() - start) * 1e6;
  };
  auto [before, after] = race_programs([&] { return std::vector{run(plain.program)}; },
                                       [&] { return std::vector{run(built.program)}; },
                                       steady_seconds() + seconds, steady_seconds);
  if (before.run_us.size() < least_confirming_runs) return;
  if (outcome.changed == 0) {  // one program: what its halves differ by is the machine's doing
    after.run_us.insert(after.run_us.end(), before.run_us.begin(), before.run_us.end());
    before = after;
  }
  outcome.before_ms = median(before.run_us) * 1e-3;
  outcome.after_ms = median(after.run_us) * 1e-3;
}

Outcome count_kernels(const Imported& imported, const std::vector<Choice>& choices) {
  Outcome outcome;
  outcome.kernels = static_cast<int>(choices.size());
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const bool timed = choices[i].median_us > 0;
    const bool differs =
        choices[i].candidate != default_candidate(imported.plan->kernels[i], imported.setup->machine);
    outcome.untried += timed ? 0 : 1;
    outcome.changed += differs ? 1 : 0;
    outcome.better += timed && differs ? 1 : 0;
  }
  return outcome;
}

std::string outcome_line(const Outcome& outcome) {
  std::string times = "model not measured";
  if (outcome.before_ms) {
    times = fmt::format("{:.3g} -> {:.3g} ms ({:.2f}x)", *outcome.before_ms, outcome.after_ms,
                        *outcome.before_ms / outcome.after_ms);
  }
  return fmt::format("{}, {}, {} better, {} untried\n", times, counted(outcome.kernels, "kernel"),
                     outcome.better, outcome.untried);
}

nlohmann::json outcome_json(const Outcome& outcome) {
  nlohmann::json json{{"kernels", outcome.kernels}, {"better", outcome.better}, {"untried", outcome.untried}};
  json["before_ms"] = outcome.before_ms ? nlohmann::json(*outcome.before_ms) : nullptr;
  json["after_ms"] = outcome.before_ms ? nlohmann::json(outcome.after_ms) : nullptr;
  return json;
}

/// The last JSON line of the progress.
void say_done(const nlohmann::json& outcome, const CompileReport& report) {
  nlohmann::json line = outcome;
  line["done"] = "tuning";
  line["trials"] = report.trials;
  line["compiled"] = report.compiled;
  line["tune_seconds"] = report.tune_seconds;
  print_error(json_text(line) + "\n");
}

/// One combination of sizes, whose winners are shown.
std::pair<CompileReport, nlohmann::json> tune_at(const Options& options, const OpenModel& model,
                                                 const Sizes& sizes) {
  const Imported imported = load(model, sizes);
  Chosen chosen = choose(imported);
  Outcome outcome;
  if (interrupt_signal() == 0) {
    Built built = build_program(imported, std::move(chosen));
    outcome = count_kernels(imported, *built.choices);
    measure_gain(imported, built, outcome);
    chosen = {*built.choices, std::move(built.report)};
  } else {
    outcome = count_kernels(imported, chosen.choices);
  }
  print_warnings(chosen.report);
  const std::string at = describe(model.parsed.sizes, sizes);
  say(options, (at.empty() ? "" : at + ": ") + summary_line(imported.path, chosen.report) +
                   kernel_table(*imported.plan, chosen.choices) + outcome_line(outcome));
  nlohmann::json document = outcome_json(outcome);
  if (!at.empty()) document["sizes"] = at;
  if (imported.setup->config.log_progress == ProgressStyle::jsonl) say_done(document, chosen.report);
  return {chosen.report, document};
}

/// Every combination of sizes to be fast at, until a signal ends it. `outcomes` gets one document for each.
CompileReport tune_sizes(const Options& options, const OpenModel& opened, nlohmann::json& outcomes) {
  std::optional<CompileReport> total;
  at_hinted_sizes(opened, [&](const OpenModel& model, const Sizes& sizes) {
    if (total && interrupt_signal() != 0) return 0.0;
    const auto [report, outcome] = tune_at(options, model, sizes);
    outcomes.push_back(outcome);
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
  refuse_lock(*model.setup, "sylvite tune");
  nlohmann::json outcomes;
  const CompileReport report = tune_sizes(options, model, outcomes);
  if (options.has("json")) {
    nlohmann::json document = report_json(load(model), report, std::nullopt);
    document["tuning"] = outcomes.front();
    if (outcomes.size() > 1) document["tuning_at_sizes"] = outcomes;
    write_json(options, document);
  }
  end_if_interrupted();
  return 0;
}

}  // namespace sylvite

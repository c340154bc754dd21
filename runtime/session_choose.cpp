#include <fmt/format.h>

#include <algorithm>

#include "autotune/winner_index.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "lowering/plan/plan_loops.h"
#include "runtime/lock.h"
#include "runtime/report.h"
#include "runtime/session.h"
#include "runtime/session_confirm.h"
#include "schedules/space.h"

namespace sylvite {
namespace {

Choice stored_or_heuristic(const Kernel& kernel, const Setup& setup, const Database& database) {
  std::optional<Winner> winner = database.find_winner(kernel, setup.key());
  if (!winner) {
    if (is_logged(LogLevel::debug))
      log_line(LogLevel::debug, "kernel {}: no winner: {}", kernel.id,
               database.explain_miss(kernel, setup.key()));
    return {default_candidate(kernel, setup.machine)};
  }
  log_line(LogLevel::debug, "kernel {}: stored winner, {:.1f} us", kernel.id, winner->median_us);
  const Source source = winner->origin == origin_pinned ? Source::pinned : Source::database;
  return {std::move(winner->candidate), source, winner->median_us,
          fmt::format("stored winner, origin {}", winner->origin)};
}

/// Of this process.
WinnerIndex& known_winners() {
  static WinnerIndex index;
  return index;
}

Source source_of(const TuneChoice& tuned, const TuneResult& result) {
  if (tuned.origin == origin_pinned) return Source::pinned;
  if (result.trials == 0) return Source::database;
  return tuned.origin == origin_search ? Source::search : Source::heuristic;
}

/// Choices for all kernels by the tuner, which looks into the database itself.
void tune_kernels(const Imported& imported, Chosen& chosen, Database& database,
                  const ProgressCallback& progress) {
  const Stopwatch watch(chosen.report.tune_seconds);
  const Setup& setup = *imported.setup;
  const TuneOptions options = tune_options(setup);
  const std::vector<std::int64_t> launches = kernel_counts(*imported.plan);
  std::vector<TuneTask> tasks;
  tasks.reserve(launches.size());
  for (std::size_t i = 0; i < launches.size(); ++i)
    tasks.push_back({&imported.plan->kernels[i], launches[i]});
  TuneResult result = tune(tasks, setup.machine, database, options, progress);
  for (TuneChoice& tuned : result.choices) {
    const Source source = source_of(tuned, result);
    chosen.choices.push_back({std::move(tuned.candidate), source, tuned.median_us, std::move(tuned.why), "",
                              std::move(tuned.object)});
  }
  chosen.report.trials += result.trials;
  chosen.report.compiled += result.compiled;
  for (const std::string& warning : result.warnings) warn(chosen.report, warning);
  if (!result.failure.empty())
    throw IoError("the tuning ended early: {} (what was found is stored; the same command goes on from it)",
                  result.failure);
  if (result.trials > 0 && !setup.machine.gpu && options.reserved_seconds > 0 && interrupt_signal() == 0)
    confirm_winners(imported, chosen, database, steady_seconds() + options.reserved_seconds);
}

/// Whether kernels are to be measured and can be; else a warning if they are to be.
bool can_measure(const Setup& setup, CompileReport& report) {
  if (!setup.config.tune_enabled || setup.config.tune_budget.count() <= 0) return false;
  if (!setup.worker_command.empty()) return true;
  warn(report,
       "nothing is measured: the `sylvite` command was not found; set CompileOptions::worker_command");
  return false;
}

}  // namespace

TuneOptions tune_options(const Setup& setup) {
  const CompileConfig& config = setup.config;
  TuneOptions options;
  options.budget_seconds = config.tune_budget.count();
  options.reserved_seconds = options.budget_seconds * std::clamp(config.tune_confirm, 0.0, 0.9);
  options.compile_jobs = setup.compile_jobs;
  options.compile_timeout = config.tune_compile_timeout.count();
  options.run_timeout = config.tune_run_timeout.count();
  options.extend = config.tune_extend;
  options.worker_command = setup.worker_command;
  options.precision = name_of(config.precision);
  return options;
}

Chosen choose_each(const Imported& imported, const std::function<Choice(const Kernel&)>& choose) {
  Chosen chosen = {{}, imported.report};
  for (const Kernel& kernel : imported.plan->kernels) chosen.choices.push_back(choose(kernel));
  return chosen;
}

Chosen choose_candidates(const Imported& imported, const ProgressCallback& progress) {
  const Setup& setup = *imported.setup;
  if (setup.lock != nullptr) return choose_locked(imported);
  Chosen chosen = {{}, imported.report};
  const Stopwatch watch(chosen.report.ready_seconds);
  const bool measures = can_measure(setup, chosen.report);
  const bool explains = is_logged(LogLevel::debug);
  if (!measures && !explains && known_winners().lacks(setup.database, imported.plan->kernels)) {
    for (const Kernel& kernel : imported.plan->kernels)
      chosen.choices.push_back({default_candidate(kernel, setup.machine)});
  } else {
    Database database(setup.database);
    warn(chosen.report, database.warning());
    if (measures) {
      tune_kernels(imported, chosen, database, progress);
      warn(chosen.report, database.unstored());
      return chosen;
    }
    known_winners().note(database);
    for (const Kernel& kernel : imported.plan->kernels)
      chosen.choices.push_back(stored_or_heuristic(kernel, setup, database));
  }
  log_line(LogLevel::info, "database '{}': winners for {} of {} kernels", setup.database,
           std::ranges::count_if(chosen.choices,
                                 [](const Choice& choice) { return choice.source != Source::heuristic; }),
           chosen.choices.size());
  return chosen;
}

std::shared_ptr<const Setup> without_tuning(const std::shared_ptr<const Setup>& setup) {
  auto quiet = std::make_shared<Setup>(*setup);
  quiet->config.tune_enabled = false;
  return quiet;
}

Chosen choose_known(const Imported& imported) {
  return choose_candidates(imported);
}

}  // namespace sylvite

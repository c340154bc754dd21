#include <filesystem>

#include "autotune/sweep.h"
#include "base/error.h"
#include "base/log.h"
#include "base/table.h"
#include "base/words.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/verb.h"
#include "runtime/lock.h"

namespace sylvite {
namespace {

Options sweep_options() {
  Options options("sweep SWEEP.ini [OPTION ...]",
                  "Tunes models x threads x precisions x modes, each with a budget. Prints the plan first. "
                  "What is done is\n"
                  "remembered in the database: the same command goes on where a killed one stopped.");
  options.expect_words("SWEEP.ini", 1, 1);
  options.add_value("db", "FILE", "the database; default: trials.db in the user's cache folder");
  options.add_value("cache-dir", "DIR", "folder of compiled kernels");
  options.add_flag("plan", "print the plan and what is done, and stop");
  options.add_flag("restart", "forget what is done (stored trials are still used)");
  options.add_value("progress", "STYLE", "auto, bar, lines, jsonl or none", "auto");
  return options;
}

/// What this command says for every item.
CompileOptions own_options(const Options& options) {
  CompileOptions wanted = command_options();
  wanted.set["log.progress"] = options.value("progress");
  if (options.has("db")) wanted.set["db.path"] = options.value("db");
  if (options.has("cache-dir")) wanted.set["cache.dir"] = options.value("cache-dir");
  return wanted;
}

/// Settings of an item as compile options, with the files of this command.
CompileOptions item_options(const Options& options, const SweepItem& item) {
  CompileOptions wanted = own_options(options);
  wanted.set.insert(item.settings.begin(), item.settings.end());
  return wanted;
}

std::string setting(const SweepItem& item, const std::string& name, const std::string& otherwise) {
  const auto found = item.settings.find(name);
  return found == item.settings.end() ? otherwise : found->second;
}

std::string plan_table(const SweepPlan& plan, const std::vector<SweepStatus>& status) {
  Table table({"#", "model", "mode", "precision", "threads", "budget", "state"});
  for (std::size_t i = 0; i < plan.items.size(); ++i) {
    const SweepItem& item = plan.items[i];
    table.add_row({std::to_string(i + 1), std::filesystem::path(item.model).filename().string(),
                   setting(item, "compile.mode", "max-autotune"), setting(item, "compile.precision", "f32"),
                   setting(item, "compile.threads", "0"), setting(item, "tune.budget", "mode's"),
                   std::string(sweep_state_name(status[i].state))});
  }
  return fmt::format("sweep {}: {} items\n{}", plan.name, plan.items.size(), table.to_string());
}

/// Settings of the command itself; the level of the log is the file's, the same for every item.
CompileConfig command_config(const Options& options, const SweepPlan& plan) {
  CompileOptions wanted = own_options(options);
  if (!plan.items.empty())
    if (const std::string level = setting(plan.items.front(), "log.level", ""); !level.empty())
      wanted.set["log.level"] = level;
  return resolve_settings(wanted).config();
}

/// A plan is only looked at: no file is made for it.
Database open_sweep_database(const Options& options, const std::string& path) {
  const bool only_asks = options.has("plan") && !options.has("restart");
  if (!only_asks) return Database(path);
  return std::filesystem::exists(path) ? Database::for_questions(path) : Database("");
}

}  // namespace

int verb_sweep(std::span<const std::string> arguments) {
  Options options = sweep_options();
  if (!options.parse(arguments)) return 0;
  const SweepPlan plan = read_sweep(options.words().front());
  const CompileConfig config = command_config(options, plan);
  set_up_log(config.log_level, config.log_progress == ProgressStyle::jsonl);
  Database database = open_sweep_database(options, database_path(config));
  if (!database.warning().empty()) log_text(LogLevel::warning, database.warning());
  if (options.has("restart")) reset_sweep(plan, database);
  print("{}", plan_table(plan, sweep_status(plan, database)));
  if (options.has("plan")) return 0;
  const SweepReport report = run_sweep(plan, database, [&](std::size_t index, const SweepItem& item) {
    const auto setup = make_setup(item_options(options, item));
    refuse_lock(*setup, "sylvite sweep");
    const Family family = prepare_family(open(item.model, setup, {}));
    print("{}/{} {}", index + 1, plan.items.size(), summary_line(item.model, family.report()));
  });
  for (const std::string& error : report.errors)
    print_error(fmt::format("sylvite: error: {}\n", printable(error)));
  print("{} done now, {} done before, {} failed\n", report.done, report.skipped, report.failed);
  if (report.elsewhere > 0) print("{} left to another process that runs this sweep\n", report.elsewhere);
  return static_cast<int>(report.code);
}

}  // namespace sylvite

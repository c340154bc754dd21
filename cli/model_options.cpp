#include "cli/model_options.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/words.h"
#include "cli/inputs.h"

namespace sylvite {
namespace {

std::string tune_message(const TuneProgress& now) {
  return fmt::format("{} tried, {} rejected, {:.2f}x faster so far", now.trials, now.rejected,
                     now.speedup_so_far);
}

std::string tune_fields(const TuneProgress& now) {
  return fmt::format(R"("kernel":"{}","trials":{},"compiled":{},"rejected":{},"speedup":{:.4f})", now.kernel,
                     now.trials, now.compiled, now.rejected, now.speedup_so_far);
}

}  // namespace

CompileOptions compile_options(const Options& options, const std::string& mode) {
  CompileOptions wanted;
  if (!mode.empty()) wanted.mode = mode;
  wanted.config_files = options.values("config");
  for (const std::string& assignment : options.values("set")) {
    const auto [name, value] = split_assignment(assignment, "--set");
    wanted.set[name] = value;
  }
  for (const Knob& knob : knob_table()) {
    const std::string flag(knob.flag);
    if (!flag.empty() && options.has(flag)) wanted.set[std::string(knob.name)] = options.value(flag);
  }
  wanted.import.bound_inputs = read_named_tensors(options.values("bind"), "--bind");
  return wanted;
}

std::shared_ptr<const Setup> begin(const Options& options, const CompileOptions& wanted) {
  const Settings settings = resolve_settings(wanted);
  const CompileConfig config = settings.config();
  set_up_log(config.log_level, config.log_progress == ProgressStyle::jsonl);
  if (options.has("dump-config")) write_text(options.value("dump-config"), settings.to_ini());
  return make_setup(config, wanted.worker_command);
}

void say(const Options& options, std::string_view text) {
  const auto takes_stdout = [&](const std::string& name) {
    return options.has(name) && options.value(name) == "-";
  };
  if (!takes_stdout("json") && !takes_stdout("dump-config")) return print(text);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

std::string summary_line(const std::string& model_path, const CompileReport& report) {
  const std::string tuned =
      report.trials > 0 ? fmt::format(", {} trials in {}", report.trials, format_seconds(report.tune_seconds))
                        : "";
  return fmt::format(
      "{}: {} launches of {} kernels ({} compiled, {} from the cache){}, ready in {}, peak {}\n",
      std::filesystem::path(model_path).stem().string(), report.kernels, report.unique_kernels,
      report.compiled, report.loaded_from_cache, tuned, format_seconds(report.ready_seconds),
      format_bytes(report.peak_bytes));
}

void write_json(const Options& options, const nlohmann::json& document) {
  if (options.has("json")) write_text(options.value("json"), document.dump(2) + "\n");
}

void print_warnings(CompileReport& report) {
  for (const std::string& warning : report.warnings) log_text(LogLevel::warning, warning);
  report.warnings.clear();
}

Imported load(const std::string& path, const std::shared_ptr<const Setup>& setup,
              const ImportOptions& import) {
  try {
    return load_model(path, setup, import);
  } catch (const Error& error) {
    const std::string message = error.what();
    if (error.code() == ErrorCode::bad_usage || message.find(path) != std::string::npos) throw;
    throw Error(error.code(), path + ": " + message);
  }
}

Chosen choose(const Imported& imported) {
  const CompileConfig& config = imported.setup->config;
  ProgressStyle style = config.tune_enabled ? config.log_progress : ProgressStyle::none;
  // Lines of the log would break a bar.
  if (style == ProgressStyle::automatic && is_logged(LogLevel::info)) style = ProgressStyle::lines;
  Progress progress("tuning", style);
  std::optional<InterruptScope> scope;
  if (config.tune_enabled) scope.emplace();
  return choose_candidates(imported, [&](const TuneProgress& now) {
    if (!now.warning.empty()) log_line(LogLevel::warning, "{}", now.warning);
    const double fraction = now.budget_seconds > 0 ? now.elapsed_seconds / now.budget_seconds : 0;
    progress.update(fraction, tune_message(now), tune_fields(now));
  });
}

void end_if_interrupted() {
  if (const int signal = interrupt_signal(); signal != 0) throw Interrupted{signal};
}

Prepared prepare(const std::string& path, const std::shared_ptr<const Setup>& setup,
                 const ImportOptions& import) {
  Imported imported = load(path, setup, import);
  Chosen chosen = choose(imported);
  end_if_interrupted();
  Built built = build_program(imported, std::move(chosen));
  print_warnings(built.report);
  return {std::move(imported), std::move(built)};
}

Prepared prepare(const Options& options, const CompileOptions& wanted) {
  return prepare(options.words().front(), begin(options, wanted), wanted.import);
}

}  // namespace sylvite

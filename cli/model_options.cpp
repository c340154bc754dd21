#include "cli/model_options.h"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/words.h"
#include "cli/inputs.h"

namespace sylvite {
namespace {

void set_up_logging(LogLevel wanted) {
  auto logger =
      std::make_shared<spdlog::logger>("sylvite", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("sylvite: %l: %v");
  static constexpr spdlog::level::level_enum levels[] = {
      spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err, spdlog::level::off};
  logger->set_level(levels[static_cast<std::size_t>(wanted)]);
  spdlog::set_default_logger(std::move(logger));
}

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
  const Settings settings = resolve_settings(wanted);
  set_up_logging(settings.config().log_level);
  wanted.import.bound_inputs = read_named_tensors(options.values("bind"), "--bind");
  if (options.has("dump-config")) write_text(options.value("dump-config"), settings.to_ini());
  return wanted;
}

void say(const Options& options, std::string_view text) {
  const auto takes_stdout = [&](const std::string& name) {
    return options.has(name) && options.value(name) == "-";
  };
  if (!takes_stdout("json") && !takes_stdout("dump-config")) return print(text);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

std::string summary_line(const Session& session) {
  const CompileReport& report = session.report;
  const std::string tuned =
      report.trials > 0 ? fmt::format(", {} trials in {}", report.trials, format_seconds(report.tune_seconds))
                        : "";
  return fmt::format(
      "{}: {} launches of {} kernels ({} compiled, {} from the cache){}, ready in {}, peak {}\n",
      std::filesystem::path(session.model_path).stem().string(), report.kernels, report.unique_kernels,
      report.compiled, report.loaded_from_cache, tuned, format_seconds(report.ready_seconds),
      format_bytes(report.peak_bytes));
}

void write_json(const Options& options, const nlohmann::json& document) {
  if (options.has("json")) write_text(options.value("json"), document.dump(2) + "\n");
}

void print_warnings(Session& session) {
  for (const std::string& warning : session.report.warnings) spdlog::warn("{}", warning);
  session.report.warnings.clear();
}

Session load_session(const std::string& path, const CompileOptions& options) {
  try {
    return load_model(path, options);
  } catch (const Error& error) {
    const std::string message = error.what();
    if (error.code() == ErrorCode::bad_usage || message.find(path) != std::string::npos) throw;
    throw Error(error.code(), path + ": " + message);
  }
}

Session choose_session(const std::string& path, const CompileOptions& options) {
  Session session = load_session(path, options);
  const bool tunes = session.config.tune_enabled;
  Progress progress("tuning", tunes ? session.config.log_progress : ProgressStyle::none);
  choose_candidates(session, [&](const TuneProgress& now) {
    const double fraction = now.budget_seconds > 0 ? now.elapsed_seconds / now.budget_seconds : 0;
    progress.update(fraction, tune_message(now), tune_fields(now));
  });
  return session;
}

Session prepare_session(const std::string& path, const CompileOptions& options) {
  Session session = choose_session(path, options);
  build_program(session);
  print_warnings(session);
  return session;
}

}  // namespace sylvite

#include "cli/model_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/error.h"
#include "base/file_errors.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/json_text.h"
#include "base/log.h"
#include "base/words.h"
#include "cli/inputs.h"
#include "runtime/hinted_sizes.h"

namespace sylvite {
namespace {

/// The options that name a file to write; "-" is stdout.
constexpr std::array<const char*, 3> file_options = {"json", "dump-config", "trace"};

std::vector<std::string> files_on_stdout(const Options& options) {
  std::vector<std::string> names;
  for (const char* name : file_options)
    if (options.has(name) && options.value(name) == "-") names.emplace_back(name);
  return names;
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

CompileOptions command_options() {
  CompileOptions wanted;
  const std::filesystem::path link = "/proc/self/exe";
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink(link, error);
  if (error) return wanted;  // no /proc: what is called `sylvite` beside the library is taken
  const bool is_there = std::filesystem::equivalent(path, link, error);  // neither replaced nor removed
  wanted.worker_command = is_there ? path : link;
  return wanted;
}

CompileOptions compile_options(const Options& options, const std::string& mode) {
  CompileOptions wanted = command_options();
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
  check_destinations(options);
  if (options.has("dump-config")) write_text(options.value("dump-config"), settings.to_ini());
  return make_setup(config, wanted.worker_command);
}

void check_destinations(const Options& options) {
  const std::vector<std::string> names = files_on_stdout(options);
  if (names.size() > 1)
    throw UsageError("--{} - and --{} - would both be written to stdout; name a file for one", names[0],
                     names[1]);
  for (const char* name : file_options)
    if (options.has(name) && options.value(name) != "-") check_writable(options.value(name));
}

void say(const Options& options, std::string_view text) {
  if (files_on_stdout(options).empty()) return print(text);
  print_error(text);
}

std::string summary_line(const std::string& model_path, const CompileReport& report) {
  const std::string tuned = report.trials > 0 ? fmt::format(", {} in {}", counted(report.trials, "trial"),
                                                            format_seconds(report.tune_seconds))
                                              : "";
  const std::string programs =
      report.programs > 1 ? fmt::format("{} programs, the first of ", report.programs) : "";
  const std::string first =
      report.first_answer_seconds > 0
          ? fmt::format(", first answer in {}", format_seconds(report.first_answer_seconds))
          : "";
  return fmt::format("{}: {}{} of {} ({} compiled, {} from the cache){}{}, ready in {}, peak {}\n",
                     std::filesystem::path(model_path).stem().string(), programs,
                     counted(report.kernels, "launch", "launches"), counted(report.unique_kernels, "kernel"),
                     report.compiled, report.loaded_from_cache, tuned, first,
                     format_seconds(report.ready_seconds), format_bytes(report.peak_bytes));
}

void add_json_option(Options& options, const std::string& what) {
  options.add_value("json", "FILE", "write " + what + " as JSON; - for stdout");
}

void write_json(const Options& options, const nlohmann::json& document) {
  if (options.has("json")) write_text(options.value("json"), json_text(document, 2) + "\n");
}

void print_warnings(CompileReport& report) {
  for (const std::string& warning : report.warnings) log_text(LogLevel::warning, warning);
  report.warnings.clear();
}

OpenModel open(const std::string& path, const std::shared_ptr<const Setup>& setup,
               const ImportOptions& import) {
  return with_file_named(path, [&] { return open_model(path, setup, import); });
}

OpenModel open(const Options& options, const CompileOptions& wanted) {
  OpenModel model = open(options.words().front(), begin(options, wanted), wanted.import);
  ModelSizes& sizes = model.parsed.sizes;
  if (sizes.are_fixed()) return model;
  std::vector<std::string> sized;  // others may be no tensors of numbers
  for (const std::string& assignment : options.values("input"))
    if (std::ranges::any_of(sizes.inputs, [&](const SizedInput& input) {
          return input.is_sized && assignment.starts_with(input.name + "=");
        }))
      sized.push_back(assignment);
  std::map<std::string, Dims> given;
  for (const auto& [name, tensor] : read_named_tensors(sized, "--input")) given[name] = tensor.dims();
  hint_sizes(sizes, given);
  if (const std::string guessed = describe_guesses(sizes); !guessed.empty())
    log_line(LogLevel::warning, "{}; give --dims to choose", guessed);
  return model;
}

Imported load(const OpenModel& model, const Sizes& sizes) {
  return with_file_named(model.path, [&] { return bind_sizes(model, sizes); });
}

Imported load(const OpenModel& model) {
  Imported imported = load(model, first_sizes(model.parsed.sizes));
  count_reading(model, imported.report);
  return imported;
}

void count_reading(const OpenModel& model, CompileReport& report) {
  report.import_seconds += model.seconds;
  report.ready_seconds += model.seconds;
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
    if (!now.warning.empty()) {
      progress.make_room();
      log_line(LogLevel::warning, "{}", now.warning);
    }
    const double fraction = now.budget_seconds > 0 ? now.elapsed_seconds / now.budget_seconds : 0;
    progress.update(fraction, tune_message(now), tune_fields(now));
  });
}

void end_if_interrupted() {
  if (const int signal = interrupt_signal(); signal != 0) throw Interrupted{signal};
}

Chosen choose_or_end(const Imported& imported) {
  Chosen chosen = choose(imported);
  end_if_interrupted();
  return chosen;
}

Prepared prepare(const OpenModel& model) {
  return prepare(load(model));
}

Prepared prepare(Imported imported) {
  Chosen chosen = choose_or_end(imported);
  return prepare(std::move(imported), std::move(chosen));
}

Prepared prepare(Imported imported, Chosen chosen) {
  Built built = build_program(imported, std::move(chosen));
  print_warnings(built.report);
  return {std::move(imported), std::move(built)};
}

Family prepare_family(const OpenModel& model) {
  Family family = with_file_named(model.path, [&] { return build_family(model, choose_or_end); });
  CompileReport report = family.report();
  print_warnings(report);
  return family;
}

Prepared prepare_again(const Imported& imported, const CompileOptions& wanted) {
  CompileOptions other = wanted;
  if (imported.setup->lock != nullptr) {  // it is for the first settings alone
    for (const char* name : {"db.enabled", "tune.enabled"}) other.set[name] = "false";
    other.set["compile.frozen"] = "";
  }
  ImportOptions import = wanted.import;
  if (!imported.sizes.empty())
    for (const ValueId id : imported.graph.inputs)
      import.input_shapes[imported.graph.value(id).name] = imported.graph.type(id).dims();
  return prepare(open(imported.path, make_setup(other), import));
}

}  // namespace sylvite

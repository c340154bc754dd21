#include <algorithm>

#include "base/error.h"
#include "base/knobs.h"
#include "base/nearest.h"
#include "base/table.h"
#include "cli/agreement.h"
#include "cli/inputs.h"
#include "cli/model_options.h"
#include "cli/timing.h"
#include "cli/verb.h"
#include "runtime/hinted_sizes.h"
#include "runtime/lock.h"

namespace sylvite {
namespace {

Options bench_options() {
  Options options("bench MODEL.onnx [OPTION ...]",
                  "Measures whole runs: throughput and latency; then one profiled run, kernel by kernel.");
  options.add_value("warmup", "TIME", "untimed runs first", "1s");
  options.add_value("duration", "TIME", "timed runs", "5s");
  options.add_list("baseline", "MODE",
                   "also run this mode, turn by turn: default and reduce-overhead without stored winners, "
                   "max-autotune with them; or reference (plain schedules)");
  options.add_value("trace", "FILE", "write the profiled run as Chrome trace JSON");
  options.add_flag("no-profile", "skip the profile");
  add_input_options(options);
  add_check_option(options);
  options.add_model_options();
  return options;
}

/// Throws UsageError for what is neither a mode nor "reference".
void check_baseline(const std::string& mode) {
  const auto knob = std::ranges::find(knob_table(), "compile.mode", &Knob::name);
  std::vector<std::string_view> known(knob->choices.begin(), knob->choices.end());
  known.push_back("reference");
  if (std::ranges::find(known, mode) == known.end())
    throw UsageError("--baseline {}: expected one of {}{}", mode, fmt::join(known, ", "),
                     suggestion(mode, known));
}

/// max-autotune is what tuning found: stored winners, and measurements only when a budget is given for them.
Built build_baseline(const Imported& imported, const CompileOptions& given, const std::string& mode) {
  if (mode == "reference") return build_reference(imported);
  if (name_of(Mode::max_autotune) == mode) refuse_lock(*imported.setup, "--baseline max-autotune");
  CompileOptions wanted = given;
  wanted.set["compile.mode"] = mode;
  if (name_of(Mode::max_autotune) != mode)
    wanted.set["db.enabled"] = "false";
  else if (!given.set.contains("tune.budget"))
    wanted.set["tune.enabled"] = "false";
  return prepare_again(imported, wanted).built;
}

/// Rows of latency_row under `what`.
Table latency_table(const std::string& what) {
  return Table({what, "runs", "runs/s", "min ms", "median ms", "p90 ms", "p99 ms"});
}

std::vector<std::string> latency_row(const std::string& name, const Latency& latency) {
  const auto number = [](double ms) { return time_text(ms, 3); };
  return {name,
          std::to_string(latency.runs),
          fmt::format("{:.2f}", latency.per_second),
          number(latency.min_ms),
          number(latency.median_ms),
          number(latency.p90_ms),
          number(latency.p99_ms)};
}

/// The profile as a table; also in `document`, and where --trace says.
std::string profile_text(const Options& options, Program& program, const std::vector<Tensor>& inputs,
                         nlohmann::json& document) {
  const std::vector<LaunchTime> profile = profile_program(program, inputs);
  document["profile"] = profile_json(profile);
  document["kernels"] = work_json(program.plan());
  if (options.has("trace")) write_text(options.value("trace"), chrome_trace({profile}));
  return profile_table(program.plan(), profile);
}

/// Times on the device alone: inputs are there already, and outputs stay.
std::string device_line(Built& built, nlohmann::json& document) {
  constexpr int samples = 20;
  constexpr double sample_us = 20e3;
  const int most =
      built.room ? static_cast<int>(built.room->growth.capacity / built.room->growth.added) : 10'000;
  const auto mean_us = [&](int runs) {
    if (built.room) make_room(built.program, *built.room, runs);
    return built.program.time_on_device(runs);
  };
  const int runs = static_cast<int>(
      std::clamp(sample_us / std::max(mean_us(std::min(10, most)), 1.0), 1.0, static_cast<double>(most)));
  std::vector<double> times;
  times.reserve(samples);
  for (int i = 0; i < samples; ++i) times.push_back(mean_us(runs));
  std::ranges::sort(times);
  document["device_us"] = {{"median", times[samples / 2]}, {"min", times.front()}, {"max", times.back()}};
  return fmt::format("on the device, without copies: median {:.1f} us, min {:.1f} us, max {:.1f} us\n",
                     times[samples / 2], times.front(), times.back());
}

/// The model at one combination of sizes: says what was measured, and returns its document.
nlohmann::json bench_at(const Options& options, const CompileOptions& wanted, const Imported& imported,
                        Built& built, Table& rows) {
  const std::vector<HostValue> inputs = make_inputs(options, imported);
  const std::vector<std::string> modes = options.values("baseline");
  std::vector<Built> baselines;
  baselines.reserve(modes.size());
  for (const std::string& mode : modes) baselines.push_back(build_baseline(imported, wanted, mode));
  std::vector<Built*> models{&built};
  for (Built& baseline : baselines) models.push_back(&baseline);
  std::vector<HostValue> outputs;
  (void)timed_run(built, inputs, &outputs);
  const std::vector<std::vector<double>> times =
      timed_runs(models, inputs, options.seconds("warmup"), options.seconds("duration"));

  const Latency latency = summarize_latency(times.front());
  nlohmann::json document = report_json(imported, built.report, latency);
  Table table = latency_table("mode");
  const auto add_row = [&](const std::string& name, const Latency& of) {
    table.add_row(latency_row(name, of));
    rows.add_row(latency_row(sizes_text(imported) + ", " + name, of));
  };
  add_row(std::string(name_of(imported.setup->config.mode)), latency);
  for (std::size_t i = 0; i < modes.size(); ++i) {
    const Latency other = summarize_latency(times[i + 1]);
    add_row(modes[i] + " (baseline)", other);
    document["baselines"].push_back({{"mode", modes[i]}, {"latency_ms", latency_json(other)}});
  }
  std::string text = summary_line(imported.path, built.report) + table.to_string();
  if (!imported.sizes.empty()) text = fmt::format("at {}:\n{}", sizes_text(imported), text);
  if (imported.setup->machine.gpu) text += device_line(built, document);
  if (!options.has("no-profile"))
    text += "\n" + profile_text(options, built.program, make_graph_inputs(options, imported), document);
  say(options, text);
  check_outputs(options, wanted, imported, inputs, outputs, document);
  return document;
}

}  // namespace

int verb_bench(std::span<const std::string> arguments) {
  Options options = bench_options();
  if (!options.parse(arguments)) return 0;
  (void)options.seconds("warmup");  // a wrong word is said before anything is compiled
  (void)options.seconds("duration");
  check_oracle(options);
  for (const std::string& mode : options.values("baseline")) check_baseline(mode);
  if (options.has("trace") && options.has("no-profile"))
    throw UsageError("--trace writes the profile, which --no-profile leaves out; give one of them");
  CompileOptions wanted = compile_options(options);
  wanted.set["compile.first_answer"] = "best";  // programs are timed, not what answers until they are ready
  const OpenModel opened = open(options, wanted);
  Family family(opened);
  Table rows = latency_table("sizes");
  std::vector<nlohmann::json> documents;
  at_hinted_sizes(opened, [&](const OpenModel& model, const Sizes& sizes) {
    Imported imported = load(model, sizes);
    if (documents.empty()) count_reading(model, imported.report);
    (void)make_inputs(options, imported);  // wrong ones are said before the work
    Built& built = family.add(imported, choose_or_end);
    print_warnings(built.report);
    documents.push_back(bench_at(options, wanted, imported, built, rows));
    return built.report.tune_seconds;
  });
  nlohmann::json document = documents.front();
  if (documents.size() > 1) {
    say(options, "\n" + rows.to_string());
    for (const nlohmann::json& each : documents)
      document["at_sizes"].push_back({{"sizes", each["sizes"]}, {"latency_ms", each["latency_ms"]}});
  }
  write_json(options, document);
  return 0;
}

}  // namespace sylvite

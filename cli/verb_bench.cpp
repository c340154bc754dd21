#include "base/error.h"
#include "base/table.h"
#include "cli/agreement.h"
#include "cli/inputs.h"
#include "cli/model_options.h"
#include "cli/timing.h"
#include "cli/verb.h"

namespace sylvite {
namespace {

Options bench_options() {
  Options options("bench MODEL.onnx [OPTION ...]",
                  "Measures whole runs: throughput and latency; then one profiled run, kernel by kernel.");
  options.add_value("warmup", "TIME", "untimed runs first", "1s");
  options.add_value("duration", "TIME", "timed runs", "5s");
  options.add_value("baseline", "MODE", "also run this mode, or reference (plain schedules), turn by turn");
  options.add_value("trace", "FILE", "write the profiled run as Chrome trace JSON");
  options.add_flag("no-profile", "skip the profile");
  add_input_options(options);
  options.add_model_options();
  return options;
}

Session baseline_session(const Options& options) {
  CompileOptions wanted = compile_options(options);
  const std::string& baseline = options.value("baseline");
  if (baseline == "reference") return reference_session(options.words().front(), wanted);
  wanted.set["compile.mode"] = baseline;
  return prepare_session(options.words().front(), wanted);
}

std::vector<std::string> latency_row(const std::string& name, const Latency& latency) {
  const auto number = [](double value) { return fmt::format("{:.3f}", value); };
  return {name,
          std::to_string(latency.runs),
          fmt::format("{:.2f}", latency.per_second),
          number(latency.min_ms),
          number(latency.median_ms),
          number(latency.p90_ms),
          number(latency.p99_ms)};
}

nlohmann::json profile_json(const std::vector<LaunchTime>& times) {
  nlohmann::json list = nlohmann::json::array();
  for (const LaunchTime& time : times) {
    list.push_back({{"name", time.name},
                    {"kernel", time.kernel_id},
                    {"start_us", time.start_us},
                    {"duration_us", time.duration_us}});
  }
  return list;
}

}  // namespace

int verb_bench(std::span<const std::string> arguments) {
  Options options = bench_options();
  if (!options.parse(arguments)) return 0;
  const double warmup = options.seconds("warmup");
  const double duration = options.seconds("duration");
  Session session = prepare_session(options.words().front(), compile_options(options));
  const std::vector<Tensor> inputs = make_inputs(options, session.imported);
  std::vector<Program*> programs{&*session.program};
  std::optional<Session> baseline;
  if (options.has("baseline")) {
    baseline.emplace(baseline_session(options));
    programs.push_back(&*baseline->program);
  }
  std::vector<Tensor> outputs;
  (void)timed_run(*session.program, inputs, &outputs);
  const std::vector<std::vector<double>> times = timed_runs(programs, inputs, warmup, duration);
  const Latency latency = summarize_latency(times.front());
  nlohmann::json document = report_json(session, latency);
  Table table({"mode", "runs", "runs/s", "min ms", "median ms", "p90 ms", "p99 ms"});
  table.add_row(latency_row(session.settings.string("compile.mode"), latency));
  std::string text = summary_line(session);
  if (baseline) {
    const Latency slow = summarize_latency(times.back());
    table.add_row(latency_row(options.value("baseline"), slow));
    document["baseline"] = {{"mode", options.value("baseline")}, {"latency_ms", latency_json(slow)}};
  }
  text += table.to_string();
  if (!options.has("no-profile")) {
    const std::vector<LaunchTime> profile = profile_program(*session.program, inputs);
    document["profile"] = profile_json(profile);
    text += "\n" + profile_table(session.current_plan(), profile);
    if (options.has("trace")) write_text(options.value("trace"), chrome_trace({profile}));
  }
  say(options, text);
  check_outputs(options, session, inputs, outputs, document);
  write_json(options, document);
  return 0;
}

}  // namespace sylvite

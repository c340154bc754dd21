#include <algorithm>

#include "base/error.h"
#include "cli/explain_sections.h"
#include "cli/inputs.h"
#include "cli/kernel_choice.h"
#include "cli/kernel_story.h"
#include "cli/model_options.h"
#include "cli/summary.h"
#include "cli/timing.h"
#include "cli/verb.h"

namespace sylvite {
namespace {

Options explain_options() {
  Options options(
      "explain MODEL.onnx [OPTION ...]",
      "Shows what the compiler made of a model: launches and why, kernels and why they run what they run,\n"
      "memory. More of it by the options below.");
  options.add_flag("summary",
                   "one screen instead, after running the model: what was imported, and kernels by their "
                   "share of the time and of the machine's limit");
  add_kernel_option(options, "show this kernel only: its algorithm and schedule");
  options.add_flag("schedules", "algorithm and schedule of every kernel");
  options.add_flag("refusals", "the schedule spaces that do not take a kernel, and why");
  options.add_flag("graph", "the graph as it goes to lowering");
  options.add_flag("passes", "what each graph pass did");
  options.add_flag("all", "all of these");
  options.add_flag("profile", "also build and run the program, and show where time goes");
  options.add_flag("measure-peaks",
                   "with --summary: measure the machine's limits again; the better ones count");
  add_input_options(options);
  options.add_model_options();
  return options;
}

/// What the verb works on.
struct Explained {
  OpenModel model;
  Imported imported;
  Chosen chosen;
  std::vector<KernelStory> stories;
};

/// The model built, and its launches timed; build_program may replace choices.
std::vector<LaunchTime> run_model(const Options& options, Explained& explained) {
  Built built = build_program(explained.imported, explained.chosen);
  print_warnings(built.report);
  const std::vector<Tensor> inputs = make_graph_inputs(options, explained.imported);
  std::vector<LaunchTime> times = profile_program(built.program, inputs);
  explained.chosen = {*built.choices, std::move(built.report)};
  return times;
}

std::string sections(const Options& options, const Explained& explained,
                     const std::vector<std::size_t>& kernels) {
  const auto& [model, imported, chosen, stories] = explained;
  const auto shows = [&](const char* flag) { return options.has(flag) || options.has("all"); };
  const bool one = options.has("kernel");
  std::string text = one ? "" : size_section(model.parsed.sizes, imported.sizes);
  if (shows("graph")) text += graph_section(imported);
  if (shows("passes")) text += pass_section(imported);
  if (!one) {
    text += launch_section(*imported.plan) + host_section(imported.host.get());
    text += kernel_table(imported, chosen.choices, stories) + memory_section(*imported.plan);
  }
  for (const std::size_t i : kernels) {
    if (one || shows("schedules")) text += kernel_section(imported, chosen.choices[i], stories[i], i);
    if (shows("refusals")) text += refusal_section(imported, i);
  }
  // Every heading has an empty line ahead, and the first one has nothing to stand apart from.
  return text.substr(text.starts_with('\n') ? 1 : 0);
}

void explain(const Options& options, Explained& explained) {
  const Plan& plan = *explained.imported.plan;
  const std::vector<std::size_t> kernels = wanted_kernels(options, plan);
  std::vector<LaunchTime> times;
  if (options.has("profile")) times = run_model(options, explained);
  explained.stories = tell_kernels(explained.imported, explained.chosen.choices);
  say(options, sections(options, explained, kernels));
  if (options.has("profile")) say(options, heading("where time goes") + profile_table(plan, times));
  if (!options.has("json")) return;
  nlohmann::json report = explain_json(explained.imported, explained.chosen, explained.stories);
  if (options.has("profile")) report["profile"] = profile_json(times);
  write_json(options, report);
}

void summarize_model(const Options& options, Explained& explained) {
  const Imported& imported = explained.imported;
  const Setup& setup = *imported.setup;
  const std::vector<LaunchTime> times = run_model(options, explained);
  explained.stories = tell_kernels(imported, explained.chosen.choices);
  std::optional<MachinePeaks> peaks;
  if (!setup.machine.gpu) peaks = peaks_of(setup.machine, setup.object_cache, options.has("measure-peaks"));
  const Summary summary = summarize(*imported.plan, explained.chosen.choices, times, peaks);
  say(options, summary_text(summary, explained.model, imported, explained.chosen.choices, explained.stories));
  if (!options.has("json")) return;
  nlohmann::json report = explain_json(imported, explained.chosen, explained.stories);
  report["profile"] = profile_json(times);
  add_summary(report, summary, explained.model, imported, explained.stories);
  write_json(options, report);
}

/// What a summary leaves no room for is refused, not ignored.
void check_flags(const Options& options) {
  if (!options.has("summary")) {
    if (options.has("measure-peaks")) throw UsageError("--measure-peaks is for --summary; give both");
    return;
  }
  for (const char* flag : {"kernel", "schedules", "refusals", "graph", "passes", "all", "profile"})
    if (options.has(flag)) throw UsageError("--summary is one screen; give it or --{}", flag);
}

}  // namespace

int verb_explain(std::span<const std::string> arguments) {
  Options options = explain_options();
  if (!options.parse(arguments)) return 0;
  check_flags(options);
  Explained explained;
  explained.model = open(options, compile_options(options));
  explained.imported = load(explained.model);
  explained.chosen = choose(explained.imported);
  print_warnings(explained.chosen.report);
  if (options.has("summary"))
    summarize_model(options, explained);
  else
    explain(options, explained);
  return 0;
}

}  // namespace sylvite

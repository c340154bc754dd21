#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "base/table.h"
#include "cli/inputs.h"
#include "cli/kernel_choice.h"
#include "cli/model_options.h"
#include "cli/timing.h"
#include "cli/verb.h"
#include "runtime/schedule_text.h"
#include "schedules/space.h"
#include "sylvite/graph_text.h"

namespace sylvite {
namespace {

std::string heading(const std::string& title) {
  return "\n== " + title + " ==\n";
}

std::string indented(const std::string& text) {
  std::string result = "  ";
  for (const char c : text) {
    result += c;
    if (c == '\n') result += "  ";
  }
  result.erase(result.find_last_not_of(' ') + 1);
  if (!result.ends_with('\n')) result += '\n';
  return result;
}

std::string size_section(const ModelSizes& model, const Sizes& shown) {
  if (model.are_fixed()) return "";
  Table table({"size", "range", "where from", "shown at", "dimensions"});
  for (std::size_t i = 0; i < model.symbols.size(); ++i) {
    const SizeSymbol& symbol = model.symbols[i];
    std::string places;
    for (const SizedInput& input : model.inputs)
      for (std::size_t axis = 0; axis < input.axes.size(); ++axis)
        if (input.axes[axis].symbol == static_cast<int>(i))
          places += fmt::format("{}{}[{}]", places.empty() ? "" : " ", input.name, axis);
    table.add_row({symbol.name, symbol.range.to_string(), symbol.is_guessed ? "its name" : "--dims",
                   std::to_string(shown[i]), places});
  }
  return heading("sizes") + table.to_string() + "\n";
}

std::string pass_section(const Imported& imported) {
  Table table({"pass", "result", "nodes before", "after", "ms", "what it does"});
  for (const PassReport& pass : imported.passes) {
    const bool ran = pass.result == PassResult::changed || pass.result == PassResult::unchanged;
    table.add_row({std::string(pass.name), std::string(pass_result_name(pass.result)),
                   ran ? std::to_string(pass.nodes_before) : "", ran ? std::to_string(pass.nodes_after) : "",
                   ran ? fmt::format("{:.1f}", pass.seconds * 1e3) : "", std::string(pass.help)});
  }
  return heading("passes") + table.to_string();
}

std::string launch_section(const Plan& plan) {
  Table table({"#", "kernel", "class", "operations", "anchor", "why one group"});
  for (std::size_t i = 0; i < plan.launches.size(); ++i) {
    const Launch& launch = plan.launches[i];
    const Kernel& kernel = plan.kernels[static_cast<std::size_t>(launch.kernel)];
    table.add_row({std::to_string(i), kernel.id, std::string(kernel_class_name(kernel.kind)),
                   std::to_string(kernel.body.nodes().size()), launch.name, launch.reason});
  }
  return heading("launches") + table.to_string();
}

std::string host_section(const HostPart* host) {
  if (host == nullptr) return "";
  Table table({"host step", "why it is not compiled"});
  for (const HostStep& step : host->steps()) table.add_row({step.name, step.reason});
  return heading("host steps") + table.to_string();
}

std::string memory_section(const Plan& plan) {
  std::int64_t weights = 0;
  for (const Tensor& weight : plan.weights) weights += weight.byte_size();
  return heading("memory") + fmt::format("arena {} for values of {} together; weights {}\n",
                                         format_bytes(plan.arena_bytes),
                                         format_bytes(plan.sum_of_values_bytes), format_bytes(weights));
}

std::string kernel_section(const Kernel& kernel, const Choice& choice, const Machine& machine) {
  const std::string why = choice.why.empty() ? "" : "chosen: " + choice.why + "\n";
  const std::string cost = choice.median_us > 0 ? fmt::format(", {:.1f} us", choice.median_us) : "";
  std::string text = heading(fmt::format("kernel {} ({}; schedule from {}{})", kernel.id,
                                         kernel_class_name(kernel.kind), source_name(choice.source), cost));
  text += indented(kernel.text) + why;
  text += fmt::format("schedule, as Halide C++ over the form {}:\n", choice.candidate.form.to_string());
  text += indented(readable(choice.candidate.schedule));
  std::vector<Refusal> refusals;
  std::string taken;
  for (const BoundSpace& space : spaces_for(kernel, machine, &refusals)) taken += " " + space.name;
  text += "spaces that take it:" + taken + "\n";
  for (const Refusal& refusal : refusals)
    text += fmt::format("{} refused: {}\n", refusal.space, refusal.reason);
  return text;
}

Options explain_options() {
  Options options("explain MODEL.onnx [OPTION ...]",
                  "Shows what the compiler made of a model: graph, passes, launches and why, memory, and for "
                  "each kernel its\n"
                  "algorithm, schedule and the schedule spaces that were refused.");
  add_kernel_option(options, "show this kernel only");
  options.add_flag("profile", "also build and run the program, and show where time goes");
  add_input_options(options);
  options.add_model_options();
  return options;
}

}  // namespace

int verb_explain(std::span<const std::string> arguments) {
  Options options = explain_options();
  if (!options.parse(arguments)) return 0;
  const CompileOptions wanted_options = compile_options(options);
  const OpenModel model = open(options, wanted_options);
  const Imported imported = load(model);
  Chosen chosen = choose(imported);
  print_warnings(chosen.report);
  const Plan& plan = *imported.plan;
  const std::vector<std::size_t> wanted = wanted_kernels(options, plan);
  if (!options.has("kernel")) {
    say(options, size_section(model.parsed.sizes, imported.sizes) + graph_text(imported.transformed) +
                     pass_section(imported) + launch_section(plan) + host_section(imported.host.get()) +
                     memory_section(plan));
  }
  for (const std::size_t i : wanted)
    say(options, kernel_section(plan.kernels[i], chosen.choices[i], imported.setup->machine));
  if (options.has("profile")) {
    Built built = build_program(imported, chosen);
    print_warnings(built.report);
    const std::vector<Tensor> inputs = make_graph_inputs(options, imported);
    const std::vector<LaunchTime> profile = profile_program(built.program, inputs);
    say(options, heading("where time goes") + profile_table(plan, profile));
    chosen.report = built.report;
  }
  write_json(options, report_json(imported, chosen.report, std::nullopt));
  return 0;
}

}  // namespace sylvite

#include "cli/explain_sections.h"

#include "base/table.h"
#include "cli/output.h"
#include "lowering/plan/plan_loops.h"
#include "runtime/roofline.h"
#include "runtime/schedule_text.h"
#include "schedules/space.h"
#include "sylvite/graph_text.h"

namespace sylvite {
namespace {

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

bool ran(const PassReport& pass) {
  return pass.result == PassResult::changed || pass.result == PassResult::unchanged;
}

}  // namespace

std::string heading(const std::string& title) {
  return "\n== " + title + " ==\n";
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
  return heading("sizes") + table.to_string();
}

std::string graph_section(const Imported& imported) {
  return heading("graph") + graph_text(imported.transformed);
}

std::string pass_section(const Imported& imported) {
  Table table({"pass", "result", "nodes before", "after", "ms", "what it does"});
  for (const PassReport& pass : imported.passes) {
    table.add_row({std::string(pass.name), std::string(pass_result_name(pass.result)),
                   ran(pass) ? std::to_string(pass.nodes_before) : "",
                   ran(pass) ? std::to_string(pass.nodes_after) : "",
                   ran(pass) ? fmt::format("{:.1f}", pass.seconds * 1e3) : "", std::string(pass.help)});
  }
  return heading("passes") + table.to_string();
}

std::string launch_section(const Plan& plan) {
  const std::vector<std::int64_t> counts = launch_counts(plan);
  Table table({"#", "times", "kernel", "class", "operations", "anchor", "why one group"});
  for (std::size_t i = 0; i < plan.launches.size(); ++i) {
    const Launch& launch = plan.launches[i];
    const Kernel& kernel = plan.kernels[static_cast<std::size_t>(launch.kernel)];
    table.add_row({std::to_string(i), std::to_string(counts[i]), kernel.id,
                   std::string(kernel_class_name(kernel.kind)), std::to_string(kernel.body.nodes().size()),
                   launch.name, launch.reason});
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
  std::string text =
      heading("memory") + fmt::format("arena {} for values of {} together; weights {}\n",
                                      format_bytes(plan.arena_bytes), format_bytes(plan.sum_of_values_bytes),
                                      format_bytes(weight_bytes(plan)));
  if (plan.states.empty()) return text;
  text += fmt::format("states {}:", format_bytes(plan.state_bytes));
  for (const Port& state : plan.states) text += fmt::format(" {} {}", state.name, state.type.to_string());
  return text + "\n";
}

std::string kernel_table(const Imported& imported, const std::vector<Choice>& choices,
                         const std::vector<KernelStory>& stories) {
  Table table({"kernel", "class", "launches", "stored us", "form", "from", "tried", "next", "default"});
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const Kernel& kernel = imported.plan->kernels[i];
    const Standing& standing = stories[i].standing;
    table.add_row({kernel.id, std::string(kernel_class_name(kernel.kind)),
                   std::to_string(stories[i].launches), time_text(choices[i].median_us),
                   choices[i].candidate.form.to_string(), stories[i].origin, std::to_string(standing.tried),
                   excess_text(standing.next_ratio), excess_text(standing.default_ratio)});
  }
  return heading("kernels") + table.to_string() +
         "next, default: how much longer the next candidate and the default schedule take; --kernel ID shows "
         "more.\n";
}

std::string kernel_section(const Imported& imported, const Choice& choice, const KernelStory& story,
                           std::size_t number) {
  const Kernel& kernel = imported.plan->kernels[number];
  const std::string cost = choice.median_us > 0 ? fmt::format(", {} us", time_text(choice.median_us)) : "";
  return heading(fmt::format("kernel {} ({}; schedule from {}{})", kernel.id, kernel_class_name(kernel.kind),
                             source_name(choice.source), cost)) +
         indented(kernel.text) + "chosen: " + why_text(choice, story) + "\n" +
         fmt::format("schedule, as Halide C++ over the form {}:\n", choice.candidate.form.to_string()) +
         indented(readable(choice.candidate.schedule));
}

std::string refusal_section(const Imported& imported, std::size_t number) {
  const Kernel& kernel = imported.plan->kernels[number];
  std::vector<Refusal> refusals;
  std::string taken;
  for (const BoundSpace& space : spaces_for(kernel, imported.setup->machine, &refusals))
    taken += " " + space.name;
  std::string text = heading(fmt::format("spaces of kernel {}", kernel.id)) + "taken by:" + taken + "\n";
  for (const Refusal& refusal : refusals)
    text += fmt::format("{} refused: {}\n", refusal.space, refusal.reason);
  return text;
}

nlohmann::json explain_json(const Imported& imported, const Chosen& chosen,
                            const std::vector<KernelStory>& stories) {
  nlohmann::json report = report_json(imported, chosen.report, std::nullopt);
  report["graph"] = graph_text(imported.transformed);
  report["launches"] = nlohmann::json::array();
  const std::vector<std::int64_t> counts = launch_counts(*imported.plan);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const Launch& launch = imported.plan->launches[i];
    report["launches"].push_back(
        {{"name", launch.name},
         {"kernel", imported.plan->kernels[static_cast<std::size_t>(launch.kernel)].id},
         {"reason", launch.reason},
         {"times", counts[i]}});
  }
  report["host_steps"] = nlohmann::json::array();
  if (imported.host != nullptr)
    for (const HostStep& step : imported.host->steps())
      report["host_steps"].push_back({{"name", step.name}, {"reason", step.reason}});
  report["kernels"] = kernels_json(imported, chosen.choices, stories);
  return report;
}

}  // namespace sylvite

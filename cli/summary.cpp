#include "cli/summary.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/table.h"
#include "base/words.h"
#include "cli/facts_text.h"
#include "cli/output.h"

namespace sylvite {
namespace {

constexpr std::size_t most_rows = 26;
constexpr std::size_t most_ports = 4;
constexpr std::size_t most_operators = 8;

/// Sums over all launches of a run, in microseconds.
struct Totals {
  double us = 0;
  double bound_us = 0;
  std::map<Limit, double> by_limit;
};

double run_us(const KernelUse& use, const std::vector<KernelStory>& stories) {
  return use.each_us * static_cast<double>(stories[use.kernel].launches);
}

Totals total(const Summary& summary, const std::vector<KernelStory>& stories) {
  Totals totals;
  for (const KernelUse& use : summary.uses) {
    totals.us += run_us(use, stories);
    if (!use.bound) continue;
    const double us = use.bound->us * static_cast<double>(stories[use.kernel].launches);
    totals.bound_us += us;
    totals.by_limit[use.bound->limit] += us;
  }
  return totals;
}

std::string percent(double share) {
  return fmt::format("{:.0f}%", 100 * share);
}

std::string peaks_line(const Summary& summary, const Plan& plan) {
  if (!summary.peaks) return "not measured: the limits of GPUs are not known";
  std::vector<std::string> rates;
  for (const auto& [dtype, rate] : summary.peaks->operations)
    rates.push_back(fmt::format("{} {:.0f}", dtype_name(dtype), rate * 1e-9));
  return fmt::format("{} GFLOP/s; L2 {:.0f} GB/s; {} of weights {:.0f} GB/s", fmt::join(rates, ", "),
                     summary.peaks->l2_rate * 1e-9, format_bytes(weight_bytes(plan)),
                     summary.weight_rate * 1e-9);
}

std::string time_line(const Totals& totals) {
  std::string text = time_text(totals.us * 1e-3, 3) + " ms in kernels";
  if (totals.bound_us <= 0) return text;
  std::vector<std::string> parts;
  parts.reserve(totals.by_limit.size());
  for (const auto& [limit, us] : totals.by_limit)
    parts.push_back(fmt::format("{} {}", limit_name(limit), time_text(us * 1e-3, 3)));
  return text + fmt::format("; the machine's limit is {} ms, {} of it ({})",
                            time_text(totals.bound_us * 1e-3, 3),
                            percent(totals.bound_us / std::max(totals.us, 1e-9)), fmt::join(parts, ", "));
}

std::string compiled_line(const Imported& imported) {
  const Setup& setup = *imported.setup;
  const Plan& plan = *imported.plan;
  return fmt::format(
      "{}, {}, mode {}: {} in {} of {}; {} of weights, {} for "
      "values",
      name_of(setup.config.precision), counted(setup.machine.threads, "thread"), name_of(setup.config.mode),
      counted(imported.transformed.nodes().size(), "operation"),
      counted(plan.launches.size(), "launch", "launches"), counted(plan.kernels.size(), "kernel"),
      format_bytes(weight_bytes(plan)), format_bytes(plan.arena_bytes));
}

std::string head(const Summary& summary, const OpenModel& model, const Imported& imported,
                 const Totals& totals) {
  const ModelFacts& facts = model.facts;
  const std::string opsets = opsets_text(facts);
  std::string sizes = "all fixed";
  if (!imported.sizes.empty())
    sizes = fmt::format("{}; here {}", describe_ranges(model.parsed.sizes), sizes_text(imported));
  std::vector<std::pair<std::string, std::string>> lines = {
      {"model", fmt::format("{}: {}{}{}", std::filesystem::path(imported.path).filename().string(), opsets,
                            opsets.empty() || facts.producer.empty() ? "" : ", ", facts.producer)},
      {"nodes", fmt::format("{}: {}", facts.nodes, operators_text(facts, most_operators))},
      {"inputs", ports_text(facts.inputs, most_ports)},
      {"outputs", ports_text(facts.outputs, most_ports)},
      {"sizes", sizes},
      {"weights", weights_text(facts)},
      {"compiled", compiled_line(imported)},
      {"machine", imported.setup->machine.description()},
      {"peaks", peaks_line(summary, *imported.plan)},
      {"time", time_line(totals)}};
  if (imported.host != nullptr)
    lines.insert(lines.end() - 1,
                 {"host", fmt::format("{} not compiled, and not in this time",
                                      counted(imported.host->steps().size(), "step is", "steps are"))});
  std::string text;
  for (const auto& [what, value] : lines) text += fmt::format("{:<9} {}\n", what, value);
  return text;
}

std::string rows(const Summary& summary, const Imported& imported, const std::vector<Choice>& choices,
                 const std::vector<KernelStory>& stories, double total_us) {
  Table table({"share", "limit", "by", "launches", "each us", "kernel", "class", "form", "from", "tried",
               "next", "default"});
  double left_us = total_us;
  for (const KernelUse& use : summary.uses) {
    if (table.size() == most_rows) break;
    const Kernel& kernel = imported.plan->kernels[use.kernel];
    const KernelStory& story = stories[use.kernel];
    left_us -= run_us(use, stories);
    table.add_row(
        {fmt::format("{:.1f}%", 100 * run_us(use, stories) / std::max(total_us, 1e-9)),
         use.bound ? percent(use.bound->us / std::max(use.each_us, 1e-9)) : "-",
         use.bound ? std::string(limit_name(use.bound->limit)) : "-", std::to_string(story.launches),
         time_text(use.each_us), kernel.id, std::string(kernel_class_name(kernel.kind)),
         choices[use.kernel].candidate.form.to_string(), story.origin, std::to_string(story.standing.tried),
         excess_text(story.standing.next_ratio), excess_text(story.standing.default_ratio)});
  }
  std::string text = table.to_string();
  if (summary.uses.size() > table.size())
    text += fmt::format("and {} more, {:.1f}% of the time\n",
                        counted(summary.uses.size() - table.size(), "kernel"),
                        100 * left_us / std::max(total_us, 1e-9));
  return text;
}

constexpr std::string_view legend =
    "limit: the least time that the machine needs, as a share of the time taken, and what sets it. from: "
    "search (tried\n"
    "and won), heuristic (the default schedule), ...; tried: candidates measured, 0 for none. next, default: "
    "how much\n"
    "longer the next candidate and the default schedule take. --kernel ID shows more of one.\n";

}  // namespace

Summary summarize(const Plan& plan, const std::vector<Choice>& choices, const std::vector<LaunchTime>& times,
                  const std::optional<MachinePeaks>& peaks) {
  std::vector<std::pair<double, std::int64_t>> by_kernel(plan.kernels.size());  // time and launches
  for (const LaunchTime& time : times) {
    auto& [us, launches] = by_kernel.at(time.kernel);
    us += time.duration_us;
    launches += time.count;
  }
  Summary summary{{}, peaks, peaks ? read_rate(*peaks, weight_bytes(plan)) : 0};
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    KernelUse use{i, 0, std::nullopt};
    if (const auto& [us, launches] = by_kernel[i]; launches > 0)
      use.each_us = us / static_cast<double>(launches);
    const Work work = work_in_form(work_of(plan.kernels[i]), choices[i].candidate.form);
    if (peaks) use.bound = bound_of(work, *peaks, summary.weight_rate);
    summary.uses.push_back(use);
  }
  std::ranges::stable_sort(summary.uses, std::greater<>(),
                           [&](const KernelUse& use) { return by_kernel[use.kernel].first; });
  return summary;
}

std::string summary_text(const Summary& summary, const OpenModel& model, const Imported& imported,
                         const std::vector<Choice>& choices, const std::vector<KernelStory>& stories) {
  const Totals totals = total(summary, stories);
  return head(summary, model, imported, totals) + "\n" +
         rows(summary, imported, choices, stories, totals.us) + std::string(legend);
}

void add_summary(nlohmann::json& report, const Summary& summary, const OpenModel& model,
                 const Imported& imported, const std::vector<KernelStory>& stories) {
  const ModelFacts& facts = model.facts;
  report["imported"] = {{"opsets", facts.opsets},
                        {"nodes", facts.nodes},
                        {"operators", facts.operators},
                        {"weight_elements", facts.weight_elements},
                        {"weight_bytes", facts.weight_bytes},
                        {"operations", imported.transformed.nodes().size()}};
  for (const auto& [what, ports] : {std::pair("inputs", &facts.inputs), std::pair("outputs", &facts.outputs)})
    for (const ModelPort& port : *ports)
      report["imported"][what].push_back({{"name", port.name}, {"type", port.type}});
  const Totals totals = total(summary, stories);
  report["run"] = {{"kernels_us", totals.us}};
  if (summary.peaks) report["run"]["bound_us"] = totals.bound_us;
  for (const auto& [limit, us] : totals.by_limit)
    report["run"]["by_bound"][std::string(limit_name(limit))] = us;
  if (summary.peaks) {
    report["peaks"] = nlohmann::json::parse(peaks_text(*summary.peaks));
    report["peaks"]["weight_rate"] = summary.weight_rate;
  }
  for (const KernelUse& use : summary.uses) {
    nlohmann::json& kernel = report["kernels"][imported.plan->kernels[use.kernel].id];
    kernel["each_us"] = use.each_us;
    if (!use.bound) continue;
    kernel["bound_us"] = use.bound->us;
    kernel["bound"] = limit_name(use.bound->limit);
  }
}

}  // namespace sylvite

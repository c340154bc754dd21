#include "base/error.h"
#include "base/files.h"
#include "base/words.h"
#include "cli/model_options.h"
#include "cli/verb.h"
#include "runtime/hinted_sizes.h"
#include "runtime/lock.h"

namespace sylvite {
namespace {

Options lock_options() {
  Options options(
      "lock MODEL.onnx -o FILE [OPTION ...]",
      "Writes what every kernel of a model runs to a text file, after compiling and trying it. With\n"
      "--frozen FILE other verbs run exactly that, wherever they run, and measure nothing.");
  options.add_value("output,o", "FILE", "the lock to write");
  options.add_model_options();
  return options;
}

/// "18 from database, 4 from heuristic".
std::string sources_text(const std::map<Source, int>& counts) {
  std::string text;
  for (const auto& [source, count] : counts)
    text += fmt::format("{}{} from {}", text.empty() ? "" : ", ", count, source_name(source));
  return text;
}

}  // namespace

int verb_lock(std::span<const std::string> arguments) {
  Options options = lock_options();
  if (!options.parse(arguments)) return 0;
  if (!options.has("output")) throw UsageError("-o FILE is missing; see sylvite lock --help");
  const std::string& path = options.value("output");
  check_writable(path);
  const OpenModel opened = open(options, compile_options(options));
  refuse_lock(*opened.setup, "sylvite lock");
  Lock lock = begin_lock(*opened.setup);
  std::map<Source, int> sources;
  const auto note = [&](const Plan& plan, const std::vector<Choice>& choices) {
    for (std::size_t i = 0; i < choices.size(); ++i)
      if (!lock.kernels.contains(plan.kernels[i].id)) ++sources[choices[i].source];
    add_kernels(lock, plan, choices);
  };
  Family family(opened);
  at_hinted_sizes(opened, [&](const OpenModel& model, const Sizes& sizes) {
    const Imported imported = load(model, sizes);
    const Built& built = family.add(imported, choose_or_end);
    note(built.program.plan(), *built.choices);
    if (sizes.empty()) return built.report.tune_seconds;
    // With a number for a size, as export wants it, the model has kernels of these sizes alone.
    OpenModel fixed_model = model;
    fixed_model.menu = nullptr;
    const Imported fixed = load(fixed_model, sizes);
    const Built alone = build_program(fixed, choose_or_end(fixed));
    note(*fixed.plan, *alone.choices);
    return built.report.tune_seconds + alone.report.tune_seconds;
  });
  CompileReport report = family.report();
  print_warnings(report);
  write_file(path, to_text(lock));
  say(options,
      fmt::format("{}: {} ({})\n", path, counted(lock.kernels.size(), "kernel"), sources_text(sources)));
  if (options.has("json")) write_json(options, report_json(load(opened), report, std::nullopt));
  return 0;
}

}  // namespace sylvite

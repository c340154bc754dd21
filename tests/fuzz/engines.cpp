#include "tests/fuzz/engines.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "frontend/onnx/importer.h"
#include "frontend/passes/pass_list.h"
#include "frontend/quick/quick.h"
#include "lowering/plan/plan_interpreter.h"
#include "runtime/kernel_menu.h"
#include "runtime/session.h"
#include "tests/fuzz/check_sizes.h"
#include "tests/fuzz/resize_graph.h"
#include "tests/support/checked_passes.h"
#include "tests/support/sample_card.h"

namespace sylvite::fuzz {
namespace {

std::vector<Tensor> run_plan(const Graph& graph, const std::vector<Tensor>& inputs,
                             const EngineOptions& /*options*/, EngineNotes& /*notes*/) {
  PassRunner runner = checked_passes();
  const Graph after = run_passes(graph, {}, runner);
  return interpret_plan(lower(after, {}, runner), inputs);
}

std::vector<Tensor> run_plain_plan(const Graph& graph, const std::vector<Tensor>& inputs,
                                   const EngineOptions& /*options*/, EngineNotes& /*notes*/) {
  LoweringOptions plain;
  plain.fuse = false;
  plain.image_layout = ImageLayout::dense;
  plain.reuse_memory = false;
  return interpret_plan(lower(graph, plain), inputs);
}

/// As for a GPU: what its passes and groups make.
std::vector<Tensor> interpret_gpu_plan(const Graph& graph, const std::vector<Tensor>& inputs,
                                       const std::string& disabled) {
  CompileOptions wanted;
  wanted.set["passes.disable"] = disabled;
  return interpret_plan(*load_graph(graph, setup_without_card(wanted)).plan, inputs);
}

bool has_nan(const Tensor& tensor) {
  if (!is_float(tensor.dtype())) return false;
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    if (std::isnan(tensor.as_double(i))) return true;
  return false;
}

/// Results that are not finite are looked at without passes that make more of them so.
std::vector<Tensor> run_gpu_plan(const Graph& graph, const std::vector<Tensor>& inputs,
                                 const EngineOptions& /*options*/, EngineNotes& /*notes*/) {
  std::vector<Tensor> outputs = interpret_gpu_plan(graph, inputs, "");
  return std::ranges::any_of(outputs, has_nan)
             ? interpret_gpu_plan(graph, inputs, std::string(passes_with_zeros))
             : outputs;
}

/// What answers before kernels are compiled.
std::vector<Tensor> run_evaluated(const Graph& graph, const std::vector<Tensor>& inputs,
                                  const EngineOptions& /*options*/, EngineNotes& /*notes*/) {
  return interpret_quickly(run_passes(graph), inputs, 2);
}

CompileOptions compile_options(const std::string& mode, const EngineOptions& options) {
  CompileOptions result;
  result.mode = mode;
  result.set = {{"cache.dir", options.cache_folder},
                {"db.enabled", "false"},
                {"compile.threads", "2"},
                {"tune.compile_jobs", "1"}};
  return result;
}

/// Twice: the second run finds what the first left in the arena.
std::vector<Tensor> run_twice(Program& program, const std::vector<Tensor>& inputs) {
  (void)program.run(inputs);
  return program.run(inputs);
}

std::vector<Tensor> run_mode(const Graph& graph, const std::vector<Tensor>& inputs,
                             const CompileOptions& options, EngineNotes& notes) {
  const Imported imported = load_graph(graph, make_setup(options));
  Built built = build_program(imported, choose_candidates(imported));
  if (!built.report.warnings.empty()) throw InternalError("warning: {}", built.report.warnings.front());
  notes.trials += built.report.trials;
  for (const Choice& choice : *built.choices) notes.text += choice.candidate.to_string();
  return run_twice(built.program, inputs);
}

std::vector<Tensor> run_default(const Graph& graph, const std::vector<Tensor>& inputs,
                                const EngineOptions& options, EngineNotes& notes) {
  return run_mode(graph, inputs, compile_options("default", options), notes);
}

std::vector<Tensor> run_reduce_overhead(const Graph& graph, const std::vector<Tensor>& inputs,
                                        const EngineOptions& options, EngineNotes& notes) {
  return run_mode(graph, inputs, compile_options("reduce-overhead", options), notes);
}

/// Default mode on a GPU, with f32 that is f32.
std::vector<Tensor> run_cuda(const Graph& graph, const std::vector<Tensor>& inputs,
                             const EngineOptions& options, EngineNotes& notes) {
  CompileOptions chosen = compile_options("default", options);
  chosen.set["compile.device"] = "cuda";
  return run_mode(graph, inputs, chosen, notes);
}

std::vector<Tensor> run_max_autotune(const Graph& graph, const std::vector<Tensor>& inputs,
                                     const EngineOptions& options, EngineNotes& notes) {
  const std::filesystem::path database =
      std::filesystem::path(options.cache_folder) / fmt::format("trials_{}.db", ::getpid());
  CompileOptions chosen = compile_options("max-autotune", options);
  chosen.set["db.enabled"] = "true";
  chosen.set["db.path"] = database.string();
  chosen.set["tune.budget"] = options.budget;
  std::vector<Tensor> outputs = run_mode(graph, inputs, chosen, notes);
  std::error_code ignored;
  std::filesystem::remove(database, ignored);
  return outputs;
}

std::vector<Tensor> run_random(const Graph& graph, const std::vector<Tensor>& inputs,
                               const EngineOptions& options, EngineNotes& notes) {
  const Imported imported = load_graph(graph, make_setup(compile_options("default", options)));
  std::mt19937 random(options.seed);
  Chosen chosen = choose_each(imported, [&](const Kernel& kernel) {
    return Choice{random_candidate(kernel, imported.setup->machine, random), Source::search};
  });
  for (std::size_t i = 0; i < chosen.choices.size(); ++i)
    notes.text += imported.plan->kernels[i].text + chosen.choices[i].candidate.to_string();
  Built built = build_program(imported, std::move(chosen));
  for (const std::string& warning : built.report.warnings) notes.text += warning + "\n";
  return run_twice(built.program, inputs);
}

/// Kernels that were made for other sizes: one of the inputs' extents differs in a second graph, with which kernels are
/// compared, and whose sizes their schedules are chosen for.
std::vector<Tensor> run_open(const Graph& graph, const std::vector<Tensor>& inputs,
                             const EngineOptions& options, EngineNotes& notes) {
  Imported imported = load_graph(graph, make_setup(compile_options("default", options)));
  KernelMenu menu;
  for (const Graph& other : resized_graphs(graph))
    menu.learn(*load_graph(other, imported.setup).plan, imported.setup->machine);
  menu.learn(*imported.plan, imported.setup->machine);
  imported.plan = menu.apply(imported.plan, imported.setup->machine);
  Built built = build_program(imported, choose_candidates(imported));
  if (!built.report.warnings.empty()) throw InternalError("warning: {}", built.report.warnings.front());
  for (std::size_t i = 0; i < built.choices->size(); ++i) {
    const Kernel& kernel = imported.plan->kernels[i];
    if (!kernel.open) continue;
    ++notes.trials;
    notes.text += fmt::format("{}at {}\n{}\n", kernel.text, fmt::join(kernel.sizes, ", "),
                              built.choices->at(i).candidate.to_string());
  }
  return run_twice(built.program, inputs);
}

constexpr Engine engines[] = {
    {"plan", run_plan},
    {"plain-plan", run_plain_plan},
    {"gpu-plan", run_gpu_plan},
    {"default", run_default},
    {"reduce-overhead", run_reduce_overhead},
    {"random", run_random},
    {"max-autotune", run_max_autotune},
    {"open", run_open},
    {"evaluated", run_evaluated},
    {"cuda", run_cuda},
};

}  // namespace

std::shared_ptr<const Setup> setup_without_card(CompileOptions options) {
  options.set["compile.device"] = "cuda";
  Setup setup;
  setup.config = resolve_settings(options).config();
  setup.machine = with_gpu(detect_machine(1), sample_card());
  return std::make_shared<const Setup>(std::move(setup));
}

std::span<const Engine> engine_table() {
  return engines;
}

const Engine& find_engine(std::string_view name) {
  for (const Engine& engine : engines)
    if (engine.name == name) return engine;
  throw UsageError("engine '{}' is unknown", name);
}

Candidate random_candidate(const Kernel& kernel, const Machine& machine, std::mt19937& random) {
  const std::vector<BoundSpace> spaces = spaces_for(kernel, machine);
  for (int attempt = 0; attempt < 20; ++attempt) {
    const BoundSpace& space = spaces[random() % spaces.size()];
    Point point;
    for (const Parameter& parameter : space.parameters)
      point.push_back(parameter.values[random() % parameter.values.size()]);
    try {
      return space.at(point);
    } catch (const UnsupportedError&) {
      continue;  // this point makes no legal schedule
    }
  }
  return default_candidate(kernel, machine);
}

Outcome check_case(const ModelCase& test, const std::vector<std::string>& names,
                   const EngineOptions& options) {
  std::string_view engine = "import";
  EngineNotes notes;
  try {
    const Graph graph = import_onnx_bytes(test.model.SerializeAsString(), "");
    const Expectation expected = expect(graph, test.inputs);
    for (const std::string& name : names) {
      engine = name;
      notes.text.clear();
      const SizeCheck* const check = find_size_check(name);
      const std::string text =
          check != nullptr ? check->run(test, options, notes)
                           : difference(find_engine(name).run(graph, test.inputs, options, notes), expected);
      if (!text.empty()) return {"differs", fmt::format("{}: {}\n{}", name, text, notes.text)};
    }
  } catch (const std::exception& error) {
    return {"throws", fmt::format("{}: {}", engine, error.what())};
  }
  return {"agrees", std::to_string(notes.trials)};
}

}  // namespace sylvite::fuzz

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/log.h"
#include "frontend/graph/made_weights.h"
#include "frontend/graph/verifier.h"
#include "frontend/onnx/importer.h"
#include "frontend/passes/pass_list.h"
#include "frontend/passes/quantize_products.h"
#include "lowering/algorithms/problems.h"
#include "lowering/plan/plan_loops.h"
#include "runtime/guessed_sizes.h"
#include "runtime/kernel_menu.h"
#include "runtime/open_kernels.h"
#include "runtime/pass_names.h"
#include "runtime/report.h"
#include "runtime/session.h"
#include "runtime/size_buckets.h"
#include "runtime/symbolic_plans.h"
#include "runtime/tails.h"
#include "runtime/torch_file.h"
#include "schedules/space.h"

namespace sylvite {
namespace {

PassOptions pass_options(const CompileConfig& config) {
  PassOptions options;
  options.disabled.insert(config.passes_disable.begin(), config.passes_disable.end());
  options.verify = config.passes_verify;
  options.dump_folder = config.passes_dump;
  return options;
}

/// Values between kernels. With 8-bit products they are bf16 where bf16 is multiplied, too.
bool stores_bf16(const Setup& setup) {
  const Precision precision = setup.config.precision;
  return precision == Precision::bf16 ||
         (precision == Precision::int8_dynamic && setup.machine.bf16_products);
}

/// Is what is cheap kept in f32? On a GPU, where memory is what kernels wait for, only when asked.
bool keeps_wide(const Setup& setup) {
  const AutoOnOff wanted = setup.config.keep_wide;
  return wanted == AutoOnOff::automatic ? !setup.machine.gpu : wanted == AutoOnOff::on;
}

FrontendOptions frontend_options(const Setup& setup) {
  const Precision precision = setup.config.precision;
  FrontendOptions options;
  options.quantize = precision == Precision::int8_dynamic;
  options.integers = !setup.machine.gpu;
  options.widen_f16 = !setup.machine.gpu && precision != Precision::f16;
  options.widen_bf16 = !setup.machine.gpu && !setup.machine.bf16_products && !setup.machine.amx;
  if (precision == Precision::f16) options.narrow = DType::f16;
  if (stores_bf16(setup)) options.narrow = DType::bf16;
  options.narrow_options = {.keep_wide = keeps_wide(setup), .mixed_products = !setup.machine.gpu};
  return options;
}

ImageLayout image_layout(const Setup& setup, int channel_block) {
  if (!setup.config.lowering_block_channels) return ImageLayout::dense;
  if (setup.machine.gpu) return ImageLayout::channels_last;
  return channel_block > 1 ? ImageLayout::channel_blocks : ImageLayout::dense;
}

/// REQUIRES the setup to outlive what is returned.
LoweringOptions lowering_options(const Setup& setup) {
  const auto& [config, machine] = std::tie(setup.config, setup.machine);
  LoweringOptions options;
  options.fuse = config.lowering_fuse;
  options.reuse_memory = config.lowering_reuse_memory;
  // Measured with one thread: 4.8 MB beside 2 MB of L2 gain a quarter, 1.8 MB nothing, 0.6 MB lose a sixth.
  if (!machine.gpu && config.lowering_rows == AutoOff::automatic)
    options.large_bytes = machine.threads * machine.l2_bytes / 8 * 9;
  const bool tiles = machine.amx && stores_bf16(setup);
  options.channel_block = tiles ? conv_tile_depth : machine.vector_floats;
  options.image_layout = image_layout(setup, options.channel_block);
  options.multiply_patches = machine.gpu.has_value();
  options.widen_bits = machine.gpu.has_value();
  options.tf32 = machine.gpu.has_value();
  if (machine.gpu) {
    const auto known = std::make_shared<std::unordered_map<std::string, std::string>>();  // layers are alike
    options.refuse_template = [&machine, known](const Kernel& kernel) {
      const auto [found, is_new] = known->try_emplace(kernel.text);
      if (is_new) found->second = refuse_product_templates(kernel, machine);
      return found->second;
    };
  }
  return options;
}

void log_lowering(const Imported& imported) {
  for (const PassReport& pass : imported.passes) {
    if (pass.result != PassResult::changed && pass.result != PassResult::unchanged) continue;
    log_line(LogLevel::debug, "pass {}: {} nodes become {}, {:.1f} ms", pass.name, pass.nodes_before,
             pass.nodes_after, pass.seconds * 1e3);
  }
  const Plan& plan = *imported.plan;
  log_line(LogLevel::info,
           "passes and lowering: {} nodes become {}, {} launches of {} kernels, an arena of {} bytes",
           imported.graph.nodes().size(), imported.transformed.nodes().size(), plan.launches.size(),
           plan.kernels.size(), plan.arena_bytes);
}

/// Also in the bodies of loops.
bool has_quantized_product(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node& node) {
    return node.op == Op::quantized_matmul ||
           (node.op == Op::loop && has_quantized_product(node.attributes.graph("body")));
  });
}

/// Of a precision that changes nothing in this model: for its user it would look as if it had.
void warn_without_effect(Imported& imported) {
  if (imported.setup->config.precision != Precision::int8_dynamic) return;
  if (has_quantized_product(imported.transformed)) return;
  warn(
      imported.report,
      fmt::format(
          "compile.precision = int8-dynamic: no product of the model is made of 8-bit integers: only matmuls "
          "with constants of at least {} rows and columns are; the rest is {}",
          least_quantized_extent, stores_bf16(*imported.setup) ? "bf16" : "f32"));
}

void count_plan(Imported& imported) {
  imported.report.kernels = static_cast<int>(imported.plan->launches.size());
  imported.report.unique_kernels = static_cast<int>(imported.plan->kernels.size());
  imported.report.sum_of_values_bytes = imported.plan->sum_of_values_bytes;
}

/// Passes and lowering of `imported.graph`, which has sizes where these are open.
void transform(Imported& imported) {
  const Setup& setup = *imported.setup;
  Graph& graph = imported.transformed;
  PassRunner passes(pass_options(setup.config), pass_names());
  FrontendOptions options = frontend_options(setup);
  options.open_sizes = !imported.sizes.empty();
  graph = run_passes(imported.graph, options, passes);
  LoweringOptions lowering = lowering_options(setup);
  lowering.open_sizes = options.open_sizes;
  lowering.large_bytes = large_bytes_at(imported.sizes, lowering.large_bytes);
  Plan plan = lower(graph, lowering, passes);
  if (setup.machine.gpu) check_unrolls(plan);  // its program will have launches for each trip
  imported.plan = std::make_shared<const Plan>(std::move(plan));
  imported.passes = passes.reports();
  log_lowering(imported);
  warn_without_effect(imported);
  count_plan(imported);
}

Imported load(const std::shared_ptr<const Setup>& setup, const std::string& path, const Sizes& sizes,
              const std::function<ImportedModel()>& import) {
  Imported imported;
  imported.sizes = sizes;
  imported.setup = setup;
  imported.path = path;
  imported.report.warnings = setup->warnings;
  {
    const Stopwatch watch(imported.report.import_seconds);
    const double start = steady_seconds();
    NotedSizeFacts facts(!sizes.empty());
    ImportedModel model = import();
    imported.facts = facts.take();
    imported.graph = std::move(model.graph);
    imported.host = std::move(model.host);
    if (model.growth) imported.room = {*model.growth, model.grown_inputs};
    imported.report.warnings.insert(imported.report.warnings.end(), model.warnings.begin(),
                                    model.warnings.end());
    log_line(LogLevel::info, "import: '{}' has {} nodes, {} inputs and {} host steps, {:.3f} s",
             path.empty() ? imported.graph.name : path, imported.graph.nodes().size(),
             imported.graph.inputs.size(), imported.host == nullptr ? 0 : imported.host->steps().size(),
             steady_seconds() - start);
    transform(imported);
  }
  imported.report.ready_seconds = imported.report.import_seconds;
  return imported;
}

/// The model at these sizes with kernels for them alone.
Imported bind_fixed(const OpenModel& model, const Sizes& sizes) {
  OpenModel fixed = model;
  fixed.menu = nullptr;
  fixed.plans = nullptr;
  return bind_sizes(fixed, sizes);
}

/// What was imported at `sizes`, which it need not name itself. False where its plan tells of no others.
bool learn_from(const OpenModel& model, const Sizes& sizes, const Imported& imported) {
  if (imported.host != nullptr || imported.room) return false;
  model.plans->learn(sizes, imported.plan, imported.facts);
  return true;
}

/// Open kernels take the place of those for the sizes of `imported` alone.
void serve_model(const OpenModel& model, Imported& imported,
                 const std::function<std::shared_ptr<const Plan>(const Sizes&)>& lower) {
  imported.for_sizes = imported.plan;
  imported.plan =
      model.menu->serve(model.parsed.sizes, imported.sizes, imported.plan, model.setup->machine, lower);
}

void add_symbols(const OpenModel& model, Imported& imported) {
  for (const SizeSymbol& symbol : model.parsed.sizes.symbols) imported.symbols.push_back(symbol.name);
}

}  // namespace

void take_open_kernels(const OpenModel& model, Imported& imported, const ImportAt& import) {
  const Stopwatch watch(imported.report.import_seconds);
  const auto lower = [&](const Sizes& sizes) {
    const Imported other = import(sizes);
    (void)learn_from(model, sizes, other);
    return other.plan;
  };
  const bool tells = learn_from(model, imported.sizes, imported);
  serve_model(model, imported, lower);
  if (!tells) return;
  const std::optional<Sizes> wanted = model.plans->wanted(imported.sizes);
  try {
    if (wanted) (void)lower(*wanted);
  } catch (const Error& error) {
    log_line(LogLevel::info, "sizes: no plan for {}: {}", describe(model.parsed.sizes, *wanted),
             error.what());
  }
}

namespace {

/// What all sizes of a model have in common.
void share_sizes(OpenModel& model) {
  const Setup& setup = *model.setup;
  if (!setup.machine.gpu && setup.lock == nullptr && model.torch == nullptr)
    model.tails = std::make_shared<Tails>(model.setup);
  if (model.parsed.sizes.are_fixed()) return;
  model.made = std::make_shared<MadeWeights>();
  if (setup.config.open_kernels != AutoOff::automatic) return;
  model.menu = std::make_shared<KernelMenu>(model.setup);
  model.plans = std::make_shared<SymbolicPlans>(model.parsed.sizes);
}

}  // namespace

OpenModel open_model(const std::string& onnx_path, const std::shared_ptr<const Setup>& setup,
                     const ImportOptions& import) {
  OpenModel model;
  model.setup = setup;
  model.path = onnx_path;
  const Stopwatch watch(model.seconds);
  const ImportOptions options = import_options(setup->config, import);
  if (is_torch_file(onnx_path)) {
    model.torch = std::make_shared<TorchFile>(read_torch_file(onnx_path, options.follow_links));
    model.parsed.options = options;
    model.parsed.sizes = torch_file_sizes(*model.torch, options);
    model.facts = torch_file_facts(*model.torch);
  } else {
    model.parsed = parse_model(onnx_path, options);
    fit_guesses(model.parsed);
    model.facts = read_model_facts(model.parsed);
  }
  share_sizes(model);
  return model;
}

OpenModel open_model(const ParsedModel& parsed, const std::shared_ptr<const Setup>& setup) {
  OpenModel model;
  model.setup = setup;
  model.parsed = parsed;
  share_sizes(model);
  return model;
}

Imported bind_sizes(const OpenModel& model, const Sizes& sizes) {
  try {
    MadeWeights::Import weights(model.made.get());
    Imported imported = load(model.setup, model.path, sizes, [&] {
      return model.torch != nullptr
                 ? import_torch_file(*model.torch, model.parsed.options, model.parsed.sizes, sizes,
                                     gradient_kernels(model.setup->machine))
                 : import_at(model.parsed, sizes);
    });
    weights.keep(imported.plan->weights);
    if (imported.host != nullptr) imported.tails = model.tails;
    if (model.menu) take_open_kernels(model, imported, import_from(model));
    add_symbols(model, imported);
    return imported;
  } catch (const Error& error) {
    if (sizes.empty()) throw;
    throw Error(error.code(), fmt::format("at {}: {}", describe(model.parsed.sizes, sizes), error.what()));
  }
}

ImportAt import_from(const OpenModel& model) {
  return [&model](const Sizes& sizes) { return bind_fixed(model, sizes); };
}

std::shared_ptr<const Plan> learn_plan(const OpenModel& model, const Sizes& sizes, const ImportAt& import) {
  if (auto known = model.plans->at(sizes, model.setup->config.lowering_reuse_memory)) return known;
  const Imported imported = import(sizes);
  (void)learn_from(model, sizes, imported);
  return imported.plan;
}

std::optional<Imported> bind_known_sizes(const OpenModel& model, const Sizes& sizes) {
  if (model.menu == nullptr) return std::nullopt;
  Imported imported;
  const Stopwatch watch(imported.report.import_seconds);
  imported.plan = model.plans->open_at(sizes, model.setup->config.lowering_reuse_memory, *model.menu,
                                       model.setup->machine);
  if (imported.plan == nullptr) return std::nullopt;
  imported.setup = model.setup;
  imported.path = model.path;
  imported.sizes = sizes;
  add_symbols(model, imported);
  count_plan(imported);
  return imported;
}

void take_told_kernels(const OpenModel& model, Imported& told, const ImportAt& import) {
  const auto is_open = [](const Kernel& kernel) { return kernel.open != nullptr; };
  if (std::ranges::all_of(told.plan->kernels, is_open)) return;
  const Stopwatch watch(told.report.import_seconds);
  told.plan = learn_plan(model, told.sizes, import);
  serve_model(model, told, [&](const Sizes& sizes) { return learn_plan(model, sizes, import); });
}

Imported bind_told_sizes(const OpenModel& model, const Sizes& sizes) {
  std::optional<Imported> told = bind_known_sizes(model, sizes);
  if (!told) return bind_sizes(model, sizes);
  take_told_kernels(model, *told, import_from(model));
  return *std::move(told);
}

Imported load_model(const std::string& onnx_path, const std::shared_ptr<const Setup>& setup,
                    const ImportOptions& import) {
  const OpenModel model = open_model(onnx_path, setup, import);
  Imported imported = bind_sizes(model, first_sizes(model.parsed.sizes));
  imported.report.import_seconds += model.seconds;
  imported.report.ready_seconds += model.seconds;
  return imported;
}

namespace {

void check_states(const Graph& graph) {
  try {
    verify(graph);
  } catch (const InternalError& error) {
    throw ModelError("{}", error.what());
  }
}

}  // namespace

Imported load_graph_at(const Sizes& sizes, Graph graph, const std::shared_ptr<const Setup>& setup) {
  if (graph.outputs.empty()) throw ModelError("the graph has no outputs; add values to Graph::outputs");
  if (!graph.states.empty()) check_states(graph);
  return load(setup, "", sizes, [&] { return ImportedModel{std::move(graph), nullptr, {}}; });
}

Imported load_graph(Graph graph, const std::shared_ptr<const Setup>& setup) {
  return load_graph_at({}, std::move(graph), setup);
}

}  // namespace sylvite

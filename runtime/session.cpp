#include "runtime/session.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "autotune/worker_pool.h"
#include "base/clock.h"
#include "base/error.h"
#include "frontend/passes/quantize_products.h"
#include "frontend/passes/store_narrow.h"
#include "lowering/algorithms/conv_tiles.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/cudnn.h"
#include "runtime/cuda/device.h"
#include "runtime/object_cache.h"
#include "runtime/session_confirm.h"
#include "schedules/compile.h"

namespace sylvite {
namespace {

/// Adds the time until its end to a field of the report.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() { seconds_ += steady_seconds() - start_; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  double start_ = steady_seconds();
};

int cores_or(std::int64_t wanted) {
  return wanted > 0 ? static_cast<int>(wanted) : omp_get_num_procs();
}

/// The command in the folder of the program or library that this code is part of, or in bin/ beside that
/// folder; "" when there is none.
std::string find_command() {
  Dl_info self{};
  if (::dladdr(reinterpret_cast<const void*>(&find_command), &self) == 0) return "";
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(self.dli_fname, error).parent_path();
  for (const std::filesystem::path& path : {folder / "sylvite", folder.parent_path() / "bin" / "sylvite"})
    if (std::filesystem::is_regular_file(path, error)) return path.string();
  return "";
}

/// What schedules are told of the device. Throws UnsupportedError without one.
Gpu detect_gpu() {
  const cuda::DeviceProperties& properties = cuda::Device::get().properties();
  return {properties.name,         properties.capability, properties.driver, properties.multiprocessors,
          properties.shared_bytes, properties.l2_bytes};
}

PassOptions pass_options(const CompileConfig& config) {
  PassOptions options;
  for (const std::string& name : config.passes_disable) options.disabled.insert(name);
  options.verify = config.passes_verify;
  options.dump_folder = config.passes_dump;
  return options;
}

/// Values between kernels. With 8-bit products they are bf16 where bf16 is multiplied, too.
bool stores_bf16(Precision precision, const Machine& machine) {
  return precision == Precision::bf16 || (precision == Precision::int8_dynamic && machine.bf16_products);
}

LoweringOptions lowering_options(const CompileConfig& config, const Machine& machine) {
  LoweringOptions options;
  options.fuse = config.lowering_fuse;
  options.block_channels = config.lowering_block_channels;
  options.reuse_memory = config.lowering_reuse_memory;
  // Measured with one thread: 4.8 MB beside 2 MB of L2 gain a quarter, 1.8 MB nothing, 0.6 MB lose a sixth.
  if (!machine.gpu && config.lowering_rows == AutoOff::automatic)
    options.large_bytes = machine.threads * machine.l2_bytes / 8 * 9;
  const bool tiles = machine.amx && stores_bf16(config.precision, machine);
  options.channel_block = machine.gpu ? 0 : tiles ? conv_tile_depth : machine.vector_floats;
  options.multiply_patches = machine.gpu.has_value();
  options.tf32 = machine.tf32;
  return options;
}

void warn(Session& session, const std::string& message) {
  std::vector<std::string>& warnings = session.report.warnings;
  const bool is_known = std::find(warnings.begin(), warnings.end(), message) != warnings.end();
  if (!message.empty() && !is_known) warnings.push_back(message);
}

/// Refuses what the device cannot do, and replaces what it can do only slowly: without instructions for
/// products of bf16, models took 3 to 11 times as long as in f32.
void settle_precision(Session& session) {
  const Precision precision = session.config.precision;
  if (session.machine.gpu) {
    if (precision == Precision::int8_dynamic) {
      throw UnsupportedError("{}",
                             "compile.precision = int8-dynamic is for processors; on a GPU use bf16 or f16");
    }
  } else if (precision == Precision::f16) {
    throw UnsupportedError("{}",
                           "compile.precision = f16 is for GPUs (--device cuda); on a processor use bf16");
  } else if (precision == Precision::bf16 && !session.machine.bf16_products) {
    session.config.precision = Precision::f32;
    warn(session,
         "compile.precision = bf16: this processor has no products of bf16 (AVX512_BF16); using f32, "
         "which is faster on it");
  }
}

Session new_session(const CompileOptions& options) {
  Session session;
  session.worker_command = options.worker_command.empty() ? find_command() : options.worker_command;
  session.config = resolve_settings(options).config();
  session.machine = detect_machine(cores_or(session.config.threads));
  session.machine.winograd = session.config.schedules_winograd == AutoOff::automatic;
  if (session.config.device == DeviceKind::cuda) {
    session.machine = with_gpu(session.machine, detect_gpu());
    session.machine.tf32 = session.config.precision == Precision::tf32;
    if (session.config.schedules_cublaslt) session.machine.gpu->cublaslt = cuda::cublaslt_version();
    if (session.config.schedules_cudnn) session.machine.gpu->cudnn = cuda::cudnn_version();
  }
  settle_precision(session);
  return session;
}

/// Is what is cheap kept in f32? On a GPU, where memory is what kernels wait for, only when asked.
bool keeps_wide(const Session& session) {
  const AutoOnOff choice = session.config.keep_wide;
  return choice == AutoOnOff::automatic ? !session.machine.gpu : choice == AutoOnOff::on;
}

/// Passes and lowering of session.imported.
void transform(Session& session) {
  session.graph = run_passes(session.imported, pass_options(session.config), &session.passes);
  const Precision precision = session.config.precision;
  if (precision == Precision::int8_dynamic) session.graph = quantize_products(session.graph);
  if (precision == Precision::f16 || stores_bf16(precision, session.machine)) {
    const DType narrow = precision == Precision::f16 ? DType::f16 : DType::bf16;
    session.graph = store_as(session.graph, narrow,
                             {.keep_wide = keeps_wide(session), .mixed_products = !session.machine.gpu});
  }
  session.plan = lower(session.graph, lowering_options(session.config, session.machine));
  session.report.kernels = static_cast<int>(session.plan.launches.size());
  session.report.unique_kernels = static_cast<int>(session.plan.kernels.size());
  session.report.sum_of_values_bytes = session.plan.sum_of_values_bytes;
}

Choice heuristic_choice(const Kernel& kernel, const Machine& machine) {
  Choice choice;
  choice.candidate = default_candidate(kernel, machine);
  return choice;
}

Choice stored_or_heuristic(const Kernel& kernel, const Machine& machine, const Database& database,
                           const TuningKey& key) {
  std::optional<Winner> winner = database.find_winner(kernel, key);
  if (!winner) return heuristic_choice(kernel, machine);
  Choice choice;
  choice.candidate = std::move(winner->candidate);
  choice.origin = Origin::database;
  choice.median_us = winner->median_us;
  choice.why = fmt::format("stored winner, origin {}", winner->origin);
  return choice;
}

TuneOptions tune_options(const Session& session) {
  const CompileConfig& config = session.config;
  TuneOptions options;
  options.budget_seconds = config.tune_budget.count();
  options.reserved_seconds = options.budget_seconds * std::clamp(config.tune_confirm, 0.0, 0.9);
  options.compile_jobs = cores_or(config.tune_compile_jobs);
  options.compile_timeout = config.tune_compile_timeout.count();
  options.run_timeout = config.tune_run_timeout.count();
  options.extend = config.tune_extend;
  options.worker_command = session.worker_command;
  options.precision = name_of(config.precision);
  return options;
}

Origin origin_of(const TuneChoice& tuned, const TuneResult& result) {
  if (result.trials == 0) return Origin::database;
  return tuned.origin == origin_search ? Origin::search : Origin::heuristic;
}

/// Choices for all kernels by the tuner, which looks into the database itself.
void tune_session(Session& session, Database& database, const ProgressCallback& progress) {
  const Stopwatch watch(session.report.tune_seconds);
  const double reserved = tune_options(session).reserved_seconds;
  std::vector<TuneTask> tasks;
  for (const Kernel& kernel : session.plan.kernels) tasks.push_back({&kernel, 0});
  for (const Launch& launch : session.plan.launches)
    ++tasks[static_cast<std::size_t>(launch.kernel)].launches;
  TuneResult result = tune(tasks, session.machine, database, tune_options(session), progress);
  for (TuneChoice& tuned : result.choices) {
    Choice& choice = session.choices.emplace_back();
    choice.candidate = std::move(tuned.candidate);
    choice.origin = origin_of(tuned, result);
    choice.median_us = tuned.median_us;
    choice.why = std::move(tuned.why);
    choice.object = std::move(tuned.object);
  }
  session.report.trials += result.trials;
  session.report.compiled += result.compiled;
  for (const std::string& warning : result.warnings) warn(session, warning);
  const bool measured = result.trials > 0;
  session.tuning = std::move(result);
  const bool on_cpu = !session.machine.gpu;
  if (measured && on_cpu && reserved > 0) confirm_winners(session, database, steady_seconds() + reserved);
}

/// Those of the choices with these numbers whose object is still unknown after looking into the cache.
std::vector<std::size_t> load_cached(Session& session, ObjectCache& cache,
                                     const std::vector<std::size_t>& wanted) {
  std::vector<std::size_t> missing;
  for (const std::size_t i : wanted) {
    Choice& choice = session.choices[i];
    if (!choice.symbol.empty() && !choice.object.empty()) continue;
    choice.symbol = symbol_name(session.plan.kernels[i], choice.candidate, session.machine.target);
    if (!choice.object.empty()) {
      cache.store(choice.symbol, choice.object);
    } else if (std::optional<std::string> object = cache.load(choice.symbol)) {
      choice.object = std::move(*object);
      ++session.report.loaded_from_cache;
    } else {
      missing.push_back(i);
    }
  }
  return missing;
}

/// Compiles the choices with these numbers; returns those that failed, with a warning for each.
std::vector<std::size_t> compile_missing(Session& session, WorkerPool& pool, ObjectCache& cache,
                                         const std::vector<std::size_t>& missing) {
  std::vector<CompileJob> jobs;
  for (const std::size_t i : missing)
    jobs.push_back({&session.plan.kernels[i], session.choices[i].candidate, session.machine.target});
  std::vector<CompileResult> results = pool.compile(jobs);
  std::vector<std::size_t> failed;
  for (std::size_t j = 0; j < missing.size(); ++j) {
    Choice& choice = session.choices[missing[j]];
    if (results[j].verdict == Verdict::ok) {
      choice.object = std::move(results[j].object);
      cache.store(choice.symbol, choice.object);
      ++session.report.compiled;
      continue;
    }
    failed.push_back(missing[j]);
    warn(session, fmt::format("kernel {}: the {} candidate does not compile ({}): {}",
                              session.plan.kernels[missing[j]].id, origin_name(choice.origin),
                              verdict_name(results[j].verdict), results[j].message));
  }
  return failed;
}

/// The next candidate to try after one failed: the heuristic, then the reference.
void fall_back(Session& session, std::size_t i) {
  const Kernel& kernel = session.plan.kernels[i];
  Choice& choice = session.choices[i];
  if (choice.origin == Origin::reference) {
    throw CompileError("kernel {} ({}) does not compile or run; see the warnings, and please report it: {}",
                       kernel.id, kernel_class_name(kernel.kind),
                       session.report.warnings.empty() ? "" : session.report.warnings.back());
  }
  Choice heuristic = heuristic_choice(kernel, session.machine);
  if (choice.origin != Origin::heuristic && heuristic.candidate != choice.candidate) {
    choice = std::move(heuristic);
  } else {
    choice = Choice();
    choice.candidate = reference_candidate(kernel, session.machine);
    choice.origin = Origin::reference;
  }
}

ProgramOptions program_options(const Session& session) {
  ProgramOptions options;
  options.threads = session.machine.threads;
  options.spin_seconds = session.config.runtime_spin.count();
  options.on_device = session.machine.gpu.has_value();
  options.use_graph = session.config.runtime_cuda_graph;
  options.streams = static_cast<std::size_t>(session.config.runtime_cuda_streams);
  return options;
}

}  // namespace

Program make_program(const Session& session, Plan plan, const std::vector<Choice>& choices,
                     const Program* donor) {
  std::vector<CompiledKernel> kernels;
  for (const Choice& choice : choices) kernels.push_back({choice.candidate, choice.symbol, choice.object});
  return {std::move(plan), kernels, program_options(session), donor};
}

std::vector<Tensor> zero_inputs(const Plan& plan) {
  std::vector<Tensor> zeros;
  for (const BufferId id : plan.inputs) {
    const TensorType& type = plan.buffers.at(static_cast<std::size_t>(id)).type;
    zeros.emplace_back(type.dtype, type.dims());
  }
  return zeros;
}

void get_objects(Session& session) {
  ObjectCache cache(session_paths(session.config).object_cache);
  std::vector<std::size_t> all(session.choices.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::vector<std::size_t> missing = load_cached(session, cache, all);
  if (!missing.empty()) {
    const Stopwatch watch(session.report.compile_seconds);
    WorkerOptions options;
    options.command = session.worker_command;
    options.workers = cores_or(session.config.tune_compile_jobs);
    options.compile_timeout = std::max(120.0, session.config.tune_compile_timeout.count());
    WorkerPool pool(options);
    while (!missing.empty()) {
      missing = compile_missing(session, pool, cache, missing);
      for (const std::size_t i : missing) fall_back(session, i);
      missing = load_cached(session, cache, missing);
    }
    warn(session, pool.warning());
  }
  warn(session, cache.warning());
}

namespace {

void set_program(Session& session) {
  session.program = make_program(session, std::move(session.plan), session.choices, nullptr);
  session.program->allocate();
  session.report.weights_seconds += session.program->weights_seconds();
}

/// Runs the program on zeros: kernels check their bounds when they are called, and whether they hold depends
/// on shapes only. Returns the kernel that reported an error, with a warning.
std::optional<std::size_t> failing_kernel(Session& session) {
  try {
    (void)session.program->run(zero_inputs(session.program->plan()));
  } catch (const KernelError& error) {
    const std::string_view origin = origin_name(session.choices.at(error.kernel()).origin);
    warn(session, fmt::format("the {} candidate is replaced: {}", origin, error.what()));
    return error.kernel();
  }
  return std::nullopt;
}

/// Replaces candidates that compile but cannot run. Their objects leave the cache, so that the next start
/// does the same.
void replace_failing_kernels(Session& session) {
  while (const std::optional<std::size_t> failing = failing_kernel(session)) {
    ObjectCache(session_paths(session.config).object_cache).remove(session.choices[*failing].symbol);
    session.plan = session.program->plan();
    fall_back(session, *failing);
    get_objects(session);
    set_program(session);
  }
}

}  // namespace

std::string_view origin_name(Origin origin) {
  switch (origin) {
    case Origin::heuristic:
      return "heuristic";
    case Origin::database:
      return "database";
    case Origin::search:
      return "search";
    case Origin::reference:
      return "reference";
  }
  throw InternalError("corrupt origin {}", static_cast<int>(origin));
}

Session load_model(const std::string& onnx_path, const CompileOptions& options) {
  Session session = new_session(options);
  session.model_path = onnx_path;
  {
    const Stopwatch watch(session.report.import_seconds);
    ImportedModel model = import_model(onnx_path, import_options(session.config, options.import));
    session.imported = std::move(model.graph);
    session.host = std::move(model.host);
    transform(session);
  }
  session.report.ready_seconds += session.report.import_seconds;
  return session;
}

Session load_graph(Graph graph, const CompileOptions& options) {
  Session session = new_session(options);
  {
    const Stopwatch watch(session.report.import_seconds);
    session.imported = std::move(graph);
    transform(session);
  }
  session.report.ready_seconds += session.report.import_seconds;
  return session;
}

void choose_candidates(Session& session, const ProgressCallback& progress) {
  const Stopwatch watch(session.report.ready_seconds);
  session.choices.clear();
  Database database(session_paths(session.config).database);
  warn(session, database.warning());
  bool measures = session.config.tune_enabled && session.config.tune_budget.count() > 0;
  if (measures && session.worker_command.empty()) {
    warn(session,
         "nothing is measured: the `sylvite` command was not found; set CompileOptions::worker_command");
    measures = false;
  }
  if (measures) {
    tune_session(session, database, progress);
    return;
  }
  const TuningKey key = session.key();
  for (const Kernel& kernel : session.plan.kernels)
    session.choices.push_back(stored_or_heuristic(kernel, session.machine, database, key));
}

std::vector<HostValue> run_session(Session& session, const std::vector<HostValue>& inputs) {
  return run_model(session.host.get(), inputs,
                   [&](const std::vector<Tensor>& tensors) { return session.program->run(tensors); });
}

std::vector<Tensor> run_tensors(Session& session, const std::vector<Tensor>& inputs) {
  if (session.host == nullptr) return session.program->run(inputs);
  if (inputs.size() != session.host->inputs().size()) {
    throw InputError(
        "{} tensors given, the model takes {} values, some of which may be no tensors of numbers; "
        "CompiledModel::run_values takes any",
        inputs.size(), session.host->inputs().size());
  }
  std::vector<Tensor> outputs;
  for (const HostValue& output : run_session(session, {inputs.begin(), inputs.end()}))
    outputs.push_back(output.tensor());
  return outputs;
}

std::vector<std::string> output_names(const Session& session) {
  std::vector<std::string> names;
  if (session.host != nullptr) {
    for (const ModelPort& port : session.host->outputs()) names.push_back(port.name);
    return names;
  }
  for (const ValueId id : session.imported.outputs) names.push_back(session.imported.value(id).name);
  return names;
}

void build_program(Session& session) {
  {
    const Stopwatch watch(session.report.ready_seconds);
    const int compiled_before = session.report.compiled;
    get_objects(session);
    set_program(session);
    if (session.report.compiled > compiled_before) replace_failing_kernels(session);
  }
  session.report.ready_seconds -= session.report.weights_seconds;
  session.report.peak_bytes = session.program->peak_bytes();
}

}  // namespace sylvite

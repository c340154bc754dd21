#include "runtime/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "autotune/machine_failure.h"
#include "autotune/worker_pool.h"
#include "base/error.h"
#include "base/log.h"
#include "lowering/plan/plan_loops.h"
#include "runtime/lock.h"
#include "runtime/object_cache.h"
#include "runtime/prune_cache.h"
#include "runtime/report.h"
#include "schedules/compile.h"
#include "schedules/space.h"

namespace sylvite {
namespace {

/// Kernels of a plan by number.
using KernelNumbers = std::vector<std::size_t>;

KernelNumbers all_of(const Chosen& chosen) {
  KernelNumbers all(chosen.choices.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

/// Relatives share what is loaded.
bool is_loaded(const Relatives& relatives, const std::string& symbol) {
  return relatives.share_code && !relatives.programs.empty() &&
         relatives.programs.front()->has_loaded(symbol);
}

/// Those of the choices with these numbers that are not loaded, and whose object is still unknown after looking into the cache.
KernelNumbers load_cached(const Imported& imported, Chosen& chosen, ObjectCache& cache,
                          const KernelNumbers& wanted, const Relatives& relatives = {}) {
  KernelNumbers missing;
  for (const std::size_t i : wanted) {
    Choice& choice = chosen.choices[i];
    if (!choice.symbol.empty() && !choice.object.empty()) continue;
    if (choice.symbol.empty())
      choice.symbol =
          symbol_name(imported.plan->kernels[i], choice.candidate, imported.setup->machine.target);
    if (!choice.object.empty()) {
      cache.store(choice.symbol, choice.object);
    } else if (is_loaded(relatives, choice.symbol)) {
      ++chosen.report.loaded_from_cache;
    } else if (relatives.ahead != nullptr && relatives.ahead->contains(choice.symbol)) {
      choice.object = relatives.ahead->at(choice.symbol);
      chosen.has_untried = true;
    } else if (std::optional<std::string> object = cache.load(choice.symbol)) {
      choice.object = std::move(*object);
      ++chosen.report.loaded_from_cache;
      log_line(LogLevel::debug, "kernel {}: {} is in the cache", imported.plan->kernels[i].id, choice.symbol);
    } else {
      log_line(LogLevel::debug, "kernel {}: {} is not in the cache", imported.plan->kernels[i].id,
               choice.symbol);
      missing.push_back(i);
    }
  }
  return missing;
}

/// Compiles the choices with these numbers; returns those that failed, with a warning for each.
KernelNumbers compile_missing(const Imported& imported, Chosen& chosen, WorkerPool& pool, ObjectCache& cache,
                              const KernelNumbers& missing, const std::stop_token& stop) {
  const std::vector<Kernel>& kernels = imported.plan->kernels;
  std::vector<CompileJob> jobs;
  std::map<std::string, std::size_t> job_of;  // cases of one open kernel have one symbol
  for (const std::size_t i : missing)
    if (job_of.try_emplace(chosen.choices[i].symbol, jobs.size()).second)
      jobs.push_back({&kernels[i], chosen.choices[i].candidate, imported.setup->machine.target});
  std::vector<CompileResult> results = pool.compile(jobs, {}, stop);
  for (std::size_t j = 0; j < jobs.size(); ++j)
    if (results[j].unjudged) results[j] = pool.compile({jobs[j]}).at(0);  // the machine failed: once more
  chosen.report.compiled += static_cast<int>(
      std::ranges::count(results, Verdict::ok, [](const CompileResult& result) { return result.verdict; }));
  KernelNumbers failed;
  for (const std::size_t i : missing) {
    Choice& choice = chosen.choices[i];
    const CompileResult& result = results[job_of.at(choice.symbol)];
    if (result.verdict == Verdict::ok) {
      choice.object = result.object;
      cache.store(choice.symbol, choice.object);
      log_line(LogLevel::debug, "kernel {} ({}, {}): compiled in {:.2f} s, {} bytes", kernels[i].id,
               kernel_class_name(kernels[i].kind), choice.candidate.form.name, result.seconds,
               choice.object.size());
      continue;
    }
    failed.push_back(i);
    warn(chosen.report, fmt::format("kernel {}: the {} candidate does not compile ({}): {}", kernels[i].id,
                                    source_name(choice.source),
                                    result.unjudged ? "the machine failed" : verdict_name(result.verdict),
                                    with_advice(result.message)));
  }
  return failed;
}

/// No other candidate may take the place of the one that failed.
[[noreturn]] void give_up(const Imported& imported, const Chosen& chosen, std::size_t i) {
  const std::string why = chosen.report.warnings.empty() ? "" : chosen.report.warnings.back();
  if (is_machine_failure(why)) throw IoError("{}", why);
  const Kernel& kernel = imported.plan->kernels[i];
  if (chosen.choices[i].source == Source::lock) {
    throw CompileError(
        "kernel {} ({}): the schedule in the lock {} does not compile or run; run `sylvite lock` "
        "again: {}",
        kernel.id, readable_name(*imported.plan, i), imported.setup->lock->path, why);
  }
  throw CompileError("kernel {} ({}) does not compile or run; see the warnings, and please report it: {}",
                     kernel.id, kernel_class_name(kernel.kind), why);
}

/// The next candidate to try after one failed: the heuristic, then the reference.
void fall_back(const Imported& imported, Chosen& chosen, std::size_t i) {
  const Kernel& kernel = imported.plan->kernels[i];
  const Machine& machine = imported.setup->machine;
  Choice& choice = chosen.choices[i];
  if (choice.source == Source::reference || choice.source == Source::lock) give_up(imported, chosen, i);
  Candidate heuristic = default_candidate(kernel, machine);
  if (choice.source != Source::heuristic && heuristic != choice.candidate)
    choice = {std::move(heuristic)};
  else
    choice = {reference_candidate(kernel, machine), Source::reference};
}

/// After objects were stored: cache.limit. What other processes have just loaded or stored is wanted again soon.
void limit_cache(const Setup& setup, Chosen& chosen) {
  constexpr double seconds_in_use = 600;
  CacheLimits limits{.bytes = setup.config.cache_limit.count, .seconds_in_use = seconds_in_use};
  for (const Choice& choice : chosen.choices) limits.symbols_in_use.insert(choice.symbol);
  try {
    const std::vector<CacheEntry> removed = prune_cache(setup.object_cache, limits);
    if (!removed.empty())
      log_line(LogLevel::info, "cache '{}': {} objects go, cache.limit is {} bytes", setup.object_cache,
               removed.size(), setup.config.cache_limit.count);
  } catch (const IoError& error) {
    warn(chosen.report, error.what());
  }
}

ProgramOptions program_options(const Setup& setup) {
  ProgramOptions options;
  options.threads = setup.machine.threads;
  options.spin_seconds = setup.config.runtime_spin.count();
  options.on_device = setup.machine.gpu.has_value();
  options.use_graph = setup.config.runtime_cuda_graph;
  options.streams = static_cast<std::size_t>(setup.config.runtime_cuda_streams);
  return options;
}

Program load_program(const Imported& imported, Chosen& chosen, const Relatives& relatives,
                     const std::stop_token& stop) {
  get_objects(imported, chosen, stop, relatives);
  Program program = make_program(imported, chosen.choices, relatives);
  if (imported.setup->runs_here) program.upload_weights();
  chosen.report.weights_seconds += program.weights_seconds();
  return program;
}

/// Runs the program on zeros: kernels check their bounds when they are called, and whether they hold depends
/// on shapes only. On a device they check them when they are noted, so that no memory for a run is needed. Returns the
/// kernel that reported an error, with a warning.
std::optional<std::size_t> failing_kernel(Program& program, Chosen& chosen, bool on_device) {
  const auto run = [&] {
    const std::vector<Tensor> states = program.states();  // of a model that may run already
    (void)program.run(zero_inputs(program.plan()));
    program.set_states(states);
  };
  try {
    on_device ? program.prepare() : run();
  } catch (const KernelError& error) {
    const std::string_view source = source_name(chosen.choices.at(error.kernel()).source);
    warn(chosen.report, fmt::format("the {} candidate is replaced: {}", source, error.what()));
    return error.kernel();
  }
  return std::nullopt;
}

/// Tries what was compiled now, and replaces candidates that compile but cannot run. Their objects leave the cache, so
/// that the next start does the same.
Program load_running_program(const Imported& imported, Chosen& chosen, const Relatives& relatives,
                             const std::stop_token& stop) {
  const int compiled_before = chosen.report.compiled;
  Program program = load_program(imported, chosen, relatives, stop);
  if (chosen.report.compiled == compiled_before && !chosen.has_untried) return program;
  if (!imported.setup->runs_here) return program;
  const bool on_device = imported.setup->machine.gpu.has_value();
  while (const std::optional<std::size_t> failing = failing_kernel(program, chosen, on_device)) {
    ObjectCache(imported.setup->object_cache).remove(chosen.choices[*failing].symbol);
    fall_back(imported, chosen, *failing);
    program = load_program(imported, chosen, relatives, stop);
  }
  return program;
}

}  // namespace

Program make_program(const Imported& imported, const std::vector<Choice>& choices,
                     const Relatives& relatives) {
  std::vector<CompiledKernel> kernels;
  kernels.reserve(choices.size());
  for (const Choice& choice : choices) kernels.push_back({choice.candidate, choice.symbol, choice.object});
  const bool unrolls = imported.setup->machine.gpu && !imported.plan->loops.empty();
  // Launches on a device have fixed addresses. Plans have loops until here, as those of other sizes are then alike.
  return {unrolls ? std::make_shared<const Plan>(unrolled(*imported.plan)) : imported.plan, kernels,
          program_options(*imported.setup), relatives};
}

std::vector<Tensor> zero_inputs(const Plan& plan) {
  std::vector<Tensor> zeros;
  zeros.reserve(plan.inputs.size());
  for (const Port& input : plan.inputs) zeros.emplace_back(input.type.dtype, input.type.dims());
  return zeros;
}

int missing_objects(const Imported& imported, Chosen& chosen, const Relatives& relatives) {
  ObjectCache cache(imported.setup->object_cache);
  std::set<std::string> missing;  // cases of one open kernel have one symbol
  for (const std::size_t i : load_cached(imported, chosen, cache, all_of(chosen), relatives))
    missing.insert(chosen.choices[i].symbol);
  return static_cast<int>(missing.size());
}

void get_objects(const Imported& imported, Chosen& chosen, const std::stop_token& stop,
                 const Relatives& relatives) {
  const Setup& setup = *imported.setup;
  ObjectCache cache(setup.object_cache);
  const KernelNumbers all = all_of(chosen);
  KernelNumbers missing = load_cached(imported, chosen, cache, all, relatives);
  log_line(LogLevel::info, "objects: {} of {} known or in the cache '{}', {} to compile",
           all.size() - missing.size(), all.size(), setup.object_cache, missing.size());
  if (setup.worker_command.empty() && missing.size() > 1 && setup.compile_jobs > 1) {
    warn(chosen.report,
         fmt::format("{} kernels are compiled one by one in this process: the `sylvite` command was not "
                     "found; set CompileOptions::worker_command",
                     missing.size()));
  }
  if (!missing.empty()) {
    const Stopwatch watch(chosen.report.compile_seconds);
    WorkerOptions options;
    options.command = setup.worker_command;
    options.workers = setup.compile_jobs;
    options.compile_timeout = std::max(120.0, setup.config.tune_compile_timeout.count());
    WorkerPool pool(options);
    while (!missing.empty()) {
      missing = compile_missing(imported, chosen, pool, cache, missing, stop);
      for (const std::size_t i : missing) fall_back(imported, chosen, i);
      missing = load_cached(imported, chosen, cache, missing, relatives);
    }
    warn(chosen.report, pool.warning());
  }
  if (cache.has_stored()) limit_cache(setup, chosen);
  warn(chosen.report, cache.warning());
}

Built build_program(const Imported& imported, Chosen chosen, const Relatives& relatives,
                    const std::stop_token& stop) {
  const double start = steady_seconds();
  Program program = load_running_program(imported, chosen, relatives, stop);
  CompileReport& report = chosen.report;
  report.ready_seconds += steady_seconds() - start - report.weights_seconds;
  report.peak_bytes = Program::peak_bytes({&program});
  log_line(LogLevel::info, "program: {} launches of {} kernels, weights packed in {:.3f} s, peak {} bytes",
           report.kernels, report.unique_kernels, program.weights_seconds(), report.peak_bytes);
  auto choices = std::make_shared<const std::vector<Choice>>(std::move(chosen.choices));
  return {imported.setup,     imported.host,     imported.room, std::move(choices),
          std::move(program), std::move(report), imported.tails};
}

}  // namespace sylvite

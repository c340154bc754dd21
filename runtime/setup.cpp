#include "runtime/setup.h"

#include <dlfcn.h>
#include <omp.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/cudnn.h"
#include "runtime/cuda/device.h"
#include "runtime/lock.h"
#include "schedules/cuda/nvrtc.h"

namespace sylvite {
namespace {

int cores_or(std::int64_t wanted) {
  return wanted > 0 ? static_cast<int>(wanted) : omp_get_num_procs();
}

/// The command in a folder, or in bin/ beside that folder or the one above (lib/x86_64-linux-gnu); "" when there is none.
std::string find_command_near(const std::filesystem::path& folder) {
  std::error_code error;
  const std::filesystem::path parent = folder.parent_path();
  for (const std::filesystem::path& path :
       {folder / "sylvite", parent / "bin" / "sylvite", parent.parent_path() / "bin" / "sylvite"})
    if (std::filesystem::is_regular_file(path, error)) return path.string();
  return "";
}

/// The command near the library or program that this code is part of. Of a program that was found through PATH its name alone
/// is known there, so near the program's file, too.
std::string find_command() {
  std::error_code error;
  Dl_info self{};
  std::string found;
  if (::dladdr(reinterpret_cast<const void*>(&find_command_near), &self) != 0)
    found = find_command_near(std::filesystem::absolute(self.dli_fname, error).parent_path());
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return found.empty() && !error ? find_command_near(program.parent_path()) : found;
}

/// `given`, or else what is called `name` in the user's cache folder; "" when that is not to be found.
std::string path_or_cached(const std::string& given, const std::string& name) {
  if (!given.empty()) return given;
  const CacheFolder folder = user_cache_folder();
  return folder.path.empty() ? "" : folder.path + "/" + name;
}

GpuTools find_gpu_tools(const CompileConfig& config) {
  GpuTools tools;
  if (config.schedules_cublaslt) tools.cublaslt = cuda::cublaslt_version();
  if (config.schedules_cudnn) tools.cudnn = cuda::cudnn_version();
  tools.hopper = config.schedules_hopper == AutoOff::automatic;
  tools.missing_compiler = cuda::missing_nvrtc();
  return tools;
}

Machine find_machine(const CompileConfig& config) {
  Machine machine = detect_machine(cores_or(config.threads));
  machine.winograd = config.schedules_winograd == AutoOff::automatic;
  if (config.device != DeviceKind::cuda) return machine;
  machine = with_gpu(machine, cuda::Device::get().card(), find_gpu_tools(config));
  machine.tf32 = config.precision == Precision::tf32;
  return machine;
}

/// Refuses what the device cannot do, and replaces what it can do only slowly: without instructions for
/// products of bf16, models took 3 to 11 times as long as in f32.
void settle_precision(Setup& setup) {
  const Precision precision = setup.config.precision;
  if (setup.machine.gpu) {
    if (precision == Precision::int8_dynamic)
      throw UnsupportedError("compile.precision = int8-dynamic is for processors; on a GPU use bf16 or f16");
  } else if (precision == Precision::f16) {
    throw UnsupportedError("compile.precision = f16 is for GPUs (--device cuda); on a processor use bf16");
  } else if (precision == Precision::bf16 && !setup.machine.bf16_products) {
    setup.config.precision = Precision::f32;
    setup.warnings.emplace_back(
        "compile.precision = bf16: this processor has no products of bf16 (AVX512_BF16); using f32, "
        "which is faster on it");
  } else if (precision == Precision::tf32) {
    setup.config.precision = Precision::f32;
    setup.warnings.emplace_back(
        "compile.precision = tf32: processors have no products of TF32, GPUs do (--device cuda); using f32");
  }
}

/// The lock decides alone: nothing is measured, and winners are neither read nor stored.
void freeze(Setup& setup) {
  if (setup.config.frozen.empty()) return;
  setup.lock = std::make_shared<const Lock>(read_lock(setup.config.frozen));
  check_lock(*setup.lock, setup);
  setup.config.tune_enabled = false;
  setup.config.db_enabled = false;
}

}  // namespace

TuningKey Setup::key() const {
  return tuning_key(machine, std::string(name_of(config.precision)));
}

Settings resolve_settings(const CompileOptions& options) {
  Settings given;
  given.set("compile.mode", options.mode);
  for (const std::string& file : options.config_files) given.read_ini(file);
  for (const auto& [name, value] : options.set) given.set(name, value);
  const std::string mode(name_of(given.config().mode));
  Settings settings;
  settings.read_ini_text(mode_ini(mode), "mode " + mode);
  settings.override_with(given);
  return settings;
}

std::shared_ptr<const Setup> make_setup(const CompileConfig& config, const std::string& command) {
  auto setup = std::make_shared<Setup>();
  setup->config = config;
  setup->machine = find_machine(config);
  setup->worker_command = command.empty() ? find_command() : command;
  setup->compile_jobs = cores_or(config.tune_compile_jobs);
  if (config.cache_enabled) setup->object_cache = object_cache_folder(config);
  settle_precision(*setup);
  freeze(*setup);
  setup->database = database_path(setup->config);
  const bool asks_for_folder = (config.cache_enabled && config.cache_dir.empty()) ||
                               (setup->config.db_enabled && config.db_path.empty());
  if (asks_for_folder)
    if (std::string warning = user_cache_folder().warning; !warning.empty())
      setup->warnings.push_back(std::move(warning));
  log_line(LogLevel::debug,
           "setup: {} on {}, {} threads, for {}; {} workers; objects in '{}', trials in '{}'",
           name_of(setup->config.precision), setup->machine.description(), setup->machine.threads,
           setup->machine.target, setup->compile_jobs, setup->object_cache, setup->database);
  return setup;
}

std::shared_ptr<const Setup> make_setup(const CompileOptions& options) {
  return make_setup(resolve_settings(options).config(), options.worker_command);
}

std::string object_cache_folder(const CompileConfig& config) {
  return path_or_cached(config.cache_dir, "objects");
}

std::string database_path(const CompileConfig& config) {
  return config.db_enabled ? path_or_cached(config.db_path, "trials.db") : "";
}

std::shared_ptr<const Setup> with_budget(const std::shared_ptr<const Setup>& setup, double seconds) {
  auto limited = std::make_shared<Setup>(*setup);
  limited->config.tune_budget = Seconds(std::max(seconds, 0.0));
  return limited;
}

ImportOptions import_options(const CompileConfig& config, const ImportOptions& given) {
  ImportOptions import = given;
  if (config.import_random_weights >= 0) {
    import.random_weights = true;
    import.seed = static_cast<std::uint64_t>(config.import_random_weights);
  }
  import.products_are_fast = import.products_are_fast || config.device == DeviceKind::cuda;
  import.follow_links = import.follow_links || config.import_follow_links;
  for (const auto& [name, extent] : config.import_dims) import.dims[name] = extent;
  for (const auto& [name, dims] : config.import_shapes) import.input_shapes[name] = dims;
  for (const std::string& word : config.import_state) {
    const std::size_t equals = word.find('=');
    if (word == "usual")
      import.usual_states = true;
    else if (equals == std::string::npos || equals == 0 || equals + 1 == word.size())
      throw UsageError("import.state (--state) is '{}', expected INPUT=OUTPUT or usual", word);
    else if (!import.states.emplace(word.substr(0, equals), word.substr(equals + 1)).second)
      throw UsageError("import.state (--state) names '{}' twice", word.substr(0, equals));
  }
  return import;
}

}  // namespace sylvite

#include "base/error.h"
#include "base/files.h"
#include "runtime/session.h"

namespace sylvite {
namespace {

std::string in_cache_folder(const std::string& name) {
  try {
    return user_cache_folder() + "/" + name;
  } catch (const IoError&) {  // neither HOME nor XDG_CACHE_HOME: nothing is kept
    return "";
  }
}

}  // namespace

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

SessionPaths session_paths(const CompileConfig& config) {
  const auto path = [](bool enabled, const std::string& given, const char* fallback) -> std::string {
    if (!enabled) return "";
    return given.empty() ? in_cache_folder(fallback) : given;
  };
  return {path(config.cache_enabled, config.cache_dir, "objects"),
          path(config.db_enabled, config.db_path, "trials.db")};
}

ImportOptions import_options(const CompileConfig& config, const ImportOptions& given) {
  ImportOptions import = given;
  if (config.import_random_weights >= 0) {
    import.random_weights = true;
    import.seed = static_cast<std::uint64_t>(config.import_random_weights);
  }
  for (const auto& [name, extent] : config.import_dims) import.dims[name] = extent;
  for (const auto& [name, dims] : config.import_shapes) import.input_shapes[name] = dims;
  return import;
}

}  // namespace sylvite

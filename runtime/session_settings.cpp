#include <fmt/format.h>

#include <charconv>

#include "base/error.h"
#include "base/files.h"
#include "runtime/session.h"

namespace sylvite {
namespace {

void read_layers(Settings& settings, const CompileOptions& options) {
  for (const std::string& file : options.config_files) settings.read_ini(file);
  for (const auto& [name, value] : options.set) settings.set(name, value);
}

/// NAME and VALUE of "NAME=VALUE".
std::pair<std::string, std::string> split_pair(const std::string& item, std::string_view knob) {
  const std::size_t equals = item.rfind('=');
  if (equals == std::string::npos || equals == 0) throw UsageError("{}: '{}' is not NAME=VALUE", knob, item);
  return {item.substr(0, equals), item.substr(equals + 1)};
}

std::int64_t parse_extent(std::string_view text, std::string_view item, std::string_view knob) {
  std::int64_t extent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
  if (error != std::errc() || end != text.data() + text.size() || extent < 0)
    throw UsageError("{}: '{}' in '{}' is not an extent", knob, text, item);
  return extent;
}

/// Extents of "1x3x224x224"; none for "" (a scalar).
Dims parse_shape(std::string_view text, std::string_view item) {
  Dims dims;
  while (!text.empty()) {
    const std::size_t end = text.find('x');
    dims.push_back(parse_extent(text.substr(0, end), item, "import.shapes"));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
    if (text.empty()) throw UsageError("import.shapes: '{}' ends with an x", item);
  }
  return dims;
}

std::string in_cache_folder(const std::string& name) {
  try {
    return user_cache_folder() + "/" + name;
  } catch (const IoError&) {  // neither HOME nor XDG_CACHE_HOME: nothing is kept
    return "";
  }
}

}  // namespace

Settings resolve_settings(const CompileOptions& options) {
  Settings scratch;
  scratch.set("compile.mode", options.mode);
  read_layers(scratch, options);
  const std::string mode = scratch.string("compile.mode");
  Settings settings;
  settings.read_ini_text(mode_ini(mode), "mode " + mode);
  settings.set("compile.mode", mode);
  read_layers(settings, options);
  return settings;
}

SessionPaths session_paths(const Settings& settings) {
  const auto path = [&](const char* enabled, const char* knob, const char* fallback) -> std::string {
    if (!settings.boolean(enabled)) return "";
    return settings.string(knob).empty() ? in_cache_folder(fallback) : settings.string(knob);
  };
  return {path("cache.enabled", "cache.dir", "objects"), path("db.enabled", "db.path", "trials.db")};
}

ImportOptions resolve_import(const Settings& settings, const ImportOptions& given) {
  ImportOptions import = given;
  if (const std::int64_t seed = settings.integer("import.random_weights"); seed >= 0) {
    import.random_weights = true;
    import.seed = static_cast<std::uint64_t>(seed);
  }
  for (const std::string& item : settings.list("import.dims")) {
    const auto [name, value] = split_pair(item, "import.dims");
    import.dims[name] = parse_extent(value, item, "import.dims");
  }
  for (const std::string& item : settings.list("import.shapes")) {
    const auto [name, value] = split_pair(item, "import.shapes");
    import.input_shapes[name] = parse_shape(value, item);
  }
  return import;
}

}  // namespace sylvite

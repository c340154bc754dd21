#include <filesystem>

#include "base/error.h"
#include "base/knobs.h"
#include "base/table.h"
#include "cli/actions.h"
#include "cli/model_options.h"
#include "cli/verb.h"
#include "runtime/prune_cache.h"

namespace sylvite {
namespace {

using Words = std::span<const std::string>;

void add_folder_options(Options& options) {
  options.add_value("dir", "FOLDER",
                    "the object cache; default: cache.dir, or objects in the user's cache folder");
  options.add_list("config", "FILE", "INI file of knobs, for cache.dir and cache.limit");
}

CompileConfig cache_config(const Options& options) {
  CompileOptions wanted;
  wanted.config_files = options.values("config");
  if (options.has("dir")) wanted.set["cache.dir"] = options.value("dir");
  return resolve_settings(wanted).config();
}

std::string cache_folder(const Options& options) {
  if (options.has("dir") && !std::filesystem::is_directory(options.value("dir")))
    throw IoError("--dir: there is no folder {}", options.value("dir"));
  const std::string folder = object_cache_folder(cache_config(options));
  if (folder.empty()) throw UsageError("there is no user's cache folder; name one with --dir");
  return folder;
}

std::int64_t total_bytes(const std::vector<CacheEntry>& entries) {
  std::int64_t bytes = 0;
  for (const CacheEntry& entry : entries) bytes += entry.bytes;
  return bytes;
}

/// "3.5 days".
std::string idle_text(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  return seconds < 2 * 86400 ? fmt::format("{:.0f} h", seconds / 3600)
                             : fmt::format("{:.1f} days", seconds / 86400);
}

int cache_list(Words arguments) {
  Options options("cache list [OPTION ...]",
                  "The compiled kernels that are kept, the one that is idle longest first.");
  add_folder_options(options);
  add_json_option(options, "the same");
  if (!options.parse(arguments)) return 0;
  const std::string folder = cache_folder(options);
  const std::vector<CacheEntry> entries = cache_entries(folder);
  Table table({"object", "size", "idle for"});
  nlohmann::json objects = nlohmann::json::array();
  for (const CacheEntry& entry : entries) {
    table.add_row({entry.symbol.empty() ? "(not finished)" : entry.symbol, format_bytes(entry.bytes),
                   idle_text(entry.idle_seconds)});
    objects.push_back(
        {{"symbol", entry.symbol}, {"bytes", entry.bytes}, {"idle_seconds", entry.idle_seconds}});
  }
  say(options, table.to_string());
  write_json(options,
             {{"schema", 1}, {"folder", folder}, {"bytes", total_bytes(entries)}, {"objects", objects}});
  return 0;
}

int cache_size(Words arguments) {
  Options options("cache size [OPTION ...]",
                  "How many compiled kernels are kept, and how many bytes they take.");
  add_folder_options(options);
  if (!options.parse(arguments)) return 0;
  const std::string folder = cache_folder(options);
  const std::vector<CacheEntry> entries = cache_entries(folder);
  print("{}: {} objects, {}\n", folder, entries.size(), format_bytes(total_bytes(entries)));
  return 0;
}

int cache_prune(Words arguments) {
  Options options("cache prune [OPTION ...]",
                  "Removes compiled kernels that were not used for long. What is missing is compiled again.\n"
                  "Without a limit of its own it goes by cache.limit.");
  add_folder_options(options);
  options.add_value("older-than", "TIME", "those not used for so long, e.g. 30d or 12h");
  options.add_value("to", "SIZE", "the longest idle, until the others take no more, e.g. 500MB");
  if (!options.parse(arguments)) return 0;
  CacheLimits limits;
  if (options.has("older-than")) limits.idle_seconds = options.seconds("older-than");
  if (options.has("to")) limits.bytes = parse_bytes(options.value("to"), "--to").count;
  if (!limits.idle_seconds && !limits.bytes) limits.bytes = cache_config(options).cache_limit.count;
  const std::string folder = cache_folder(options);
  const std::vector<CacheEntry> removed = prune_cache(folder, limits);
  const std::vector<CacheEntry> left = cache_entries(folder);
  print("{} objects removed, {}; {} left, {}\n", removed.size(), format_bytes(total_bytes(removed)),
        left.size(), format_bytes(total_bytes(left)));
  return 0;
}

constexpr Action cache_actions[] = {
    {"size", cache_size, "how many objects there are, and how many bytes they take"},
    {"list", cache_list, "the objects, and how long each was not used"},
    {"prune", cache_prune, "remove what was not used for long"},
};

}  // namespace

int verb_cache(std::span<const std::string> arguments) {
  return run_action("cache", "The compiled kernels that later runs load.", cache_actions, arguments);
}

}  // namespace sylvite

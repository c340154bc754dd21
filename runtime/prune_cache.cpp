#include "runtime/prune_cache.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/error.h"

namespace sylvite {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view entry_suffix = ".obj";
constexpr std::string_view unfinished_suffix = ".tmp";
constexpr double unfinished_seconds = 3600;  // far longer than a write takes

}  // namespace

std::vector<CacheEntry> cache_entries(const std::string& folder) {
  std::vector<CacheEntry> entries;
  std::error_code error;
  if (folder.empty() || !fs::exists(folder, error)) return entries;
  const fs::file_time_type now = fs::file_time_type::clock::now();
  fs::directory_iterator files(folder, error);
  if (error) throw IoError("object cache {} cannot be read: {}", folder, error.message());
  for (const fs::directory_entry& file : files) {
    const std::string name = file.path().filename().string();
    const bool is_entry = name.ends_with(entry_suffix);
    if ((!is_entry && !name.ends_with(unfinished_suffix)) || !file.is_regular_file(error)) continue;
    CacheEntry entry;
    if (is_entry) entry.symbol = name.substr(0, name.size() - entry_suffix.size());
    entry.path = file.path().string();
    const std::uintmax_t bytes = file.file_size(error);
    const fs::file_time_type used = file.last_write_time(error);
    if (error) continue;  // another process removed it
    entry.bytes = static_cast<std::int64_t>(bytes);
    entry.idle_seconds = std::chrono::duration<double>(now - used).count();
    entries.push_back(std::move(entry));
  }
  std::ranges::stable_sort(entries, std::greater<>(), &CacheEntry::idle_seconds);
  return entries;
}

std::vector<CacheEntry> prune_cache(const std::string& folder, const CacheLimits& limits) {
  const std::vector<CacheEntry> entries = cache_entries(folder);
  std::int64_t bytes = 0;
  for (const CacheEntry& entry : entries) bytes += entry.bytes;
  std::vector<CacheEntry> removed;
  for (const CacheEntry& entry : entries) {
    const bool is_left_behind = entry.symbol.empty() && entry.idle_seconds > unfinished_seconds;
    const bool is_old = limits.idle_seconds && entry.idle_seconds > *limits.idle_seconds;
    const bool is_in_use =
        entry.idle_seconds < limits.seconds_in_use || limits.symbols_in_use.contains(entry.symbol);
    const bool is_too_much = limits.bytes && bytes > *limits.bytes && !is_in_use;
    if (!is_left_behind && (entry.symbol.empty() || (!is_old && !is_too_much))) continue;
    std::error_code error;
    if (!fs::remove(entry.path, error)) continue;
    bytes -= entry.bytes;
    removed.push_back(entry);
  }
  return removed;
}

}  // namespace sylvite

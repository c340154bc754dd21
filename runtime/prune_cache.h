#pragma once
// The size of an object cache: what is in it, and how it is made smaller.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sylvite {

/// A file of an object cache.
struct CacheEntry {
  std::string symbol;  ///< "" for what a writer left behind that did not finish
  std::string path;
  std::int64_t bytes = 0;
  double idle_seconds = 0;  ///< since it was stored or loaded last
};

/// The entries of a folder, the one that is idle longest first. Other files are not listed; a folder that is not there has
/// none. Throws IoError when it cannot be read.
[[nodiscard]] std::vector<CacheEntry> cache_entries(const std::string& folder);

/// What may stay.
struct CacheLimits {
  std::optional<double> idle_seconds = {};
  std::optional<std::int64_t> bytes = {};
  /// In use, and not to go because of `bytes`: these, and what is idle for less.
  std::set<std::string> symbols_in_use = {};
  double seconds_in_use = 0;
};

/// Removes entries that are idle for longer than the limit, then those that are idle longest until the others fit. What
/// writers left behind goes when it is an hour old. Other processes may use the cache meanwhile: what they lose they
/// compile again. Returns what was removed.
[[nodiscard]] std::vector<CacheEntry> prune_cache(const std::string& folder, const CacheLimits& limits);

}  // namespace sylvite

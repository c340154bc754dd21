#pragma once
// Whole files, atomically, and where the user's own files are.

#include <string>
#include <string_view>

namespace sylvite {

/// All bytes of a regular file. Throws IoError naming it.
[[nodiscard]] std::string read_file(const std::string& path);

/// Writes to a temporary name beside `path`, syncs and renames: a reader sees the old bytes or the new, never
/// a mix. Throws IoError naming the path; the temporary file is removed.
void write_file(const std::string& path, std::string_view bytes);

/// Throws the IoError that write_file would: tries it beside `path`, and leaves nothing there.
void check_writable(const std::string& path);

/// Creates the folder and its parents when missing. Throws IoError naming it.
void make_folder(const std::string& path);

/// Where the user's own files are; `warning` says what was missing to find it.
struct CacheFolder {
  /// $XDG_CACHE_HOME/sylvite, or .cache/sylvite in the home folder; "" without one. Not created.
  std::string path;
  std::string warning;
};
/// The home folder is $HOME, or what the system's list of users says, with a warning.
[[nodiscard]] CacheFolder user_cache_folder();

}  // namespace sylvite

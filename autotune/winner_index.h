#pragma once
// Which kernels a database has winners of, while its file stays as it is: a plan of kernels without any, such as that for new sizes
// as a rule, then need not open it.

#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "autotune/database.h"

namespace sylvite {

/// Of the file that it was last told of. Thread safe.
class WinnerIndex {
 public:
  /// Has the database at `path` no winner of these kernels? Without a file there is none. False where it is not known, or the file
  /// may be another since.
  [[nodiscard]] bool lacks(const std::string& path, const std::vector<Kernel>& kernels) const;
  /// Reads an open database. One that warns, or was written within the last second, is not remembered.
  void note(const Database& database);

 private:
  struct FileState {
    std::uint64_t device = 0;
    std::uint64_t number = 0;
    std::int64_t size = 0;
    std::int64_t written_ns = 0;
    bool operator==(const FileState&) const = default;
  };
  [[nodiscard]] static std::optional<FileState> state_of(const std::string& path);

  mutable std::mutex mutex_;
  std::string path_;
  std::optional<FileState> state_;
  std::set<std::string> kernels_;
};

}  // namespace sylvite

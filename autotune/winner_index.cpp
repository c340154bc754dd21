#include "autotune/winner_index.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "autotune/sqlite.h"

namespace sylvite {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

bool is_old(std::int64_t written_ns) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() - written_ns > second_ns;
}

}  // namespace

std::optional<WinnerIndex::FileState> WinnerIndex::state_of(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return FileState{info.st_dev, info.st_ino, info.st_size,
                   info.st_mtim.tv_sec * second_ns + info.st_mtim.tv_nsec};
}

bool WinnerIndex::lacks(const std::string& path, const std::vector<Kernel>& kernels) const {
  if (path.empty()) return true;
  const std::scoped_lock lock(mutex_);
  if (!state_ || path != path_ || state_of(path) != state_) return false;
  return std::ranges::none_of(kernels, [&](const Kernel& kernel) { return kernels_.contains(kernel.id); });
}

void WinnerIndex::note(const Database& database) {
  const std::scoped_lock lock(mutex_);
  const std::optional<FileState> state = state_of(database.path());
  if (state && state == state_ && database.path() == path_) return;
  state_.reset();
  if (!state || !database.warning().empty() || !is_old(state->written_ns)) return;
  std::set<std::string> kernels;
  try {
    SqliteStatement winners(database.connection(), "SELECT DISTINCT kernel FROM winners");
    while (winners.step()) kernels.insert(winners.text(0));
  } catch (const SqliteError&) {
    return;  // whoever asks the database is told
  }
  path_ = database.path();
  state_ = state;
  kernels_ = std::move(kernels);
}

}  // namespace sylvite

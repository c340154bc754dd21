#pragma once
// Content-addressed store of compiled objects: one file per symbol, checksummed, in a folder only its owner
// can write.

#include <optional>
#include <string>

namespace sylvite {

/// Process safe: entries appear atomically by rename. Thread safety: one thread at a time per ObjectCache.
/// Anything damaged, foreign or in a folder that others may write is a miss with a reason, never an error and
/// never executed.
class ObjectCache {
 public:
  /// The folder is created with mode 0700 when missing; "" disables the cache.
  explicit ObjectCache(const std::string& folder);
  [[nodiscard]] std::optional<std::string> load(const std::string& symbol);  ///< the object's bytes
  void store(const std::string& symbol, const std::string& object);
  void remove(const std::string& symbol);                        ///< absence is fine
  [[nodiscard]] bool has_stored() const { return has_stored_; }  ///< whether it made the folder larger
  /// The last reason for a miss that is not plain absence, or for a lost store; "" when there was none.
  [[nodiscard]] const std::string& warning() const { return warning_; }

 private:
  void disable(std::string reason);
  [[nodiscard]] std::string path_of(const std::string& symbol) const;

  std::string folder_;  ///< "" when disabled
  std::string warning_;
  bool has_stored_ = false;
};

}  // namespace sylvite

#pragma once
// Content-addressed store of compiled objects: one file per symbol, checksummed, in a folder only its owner can write.

#include <optional>
#include <string>

namespace sylvite {

/// Thread and process safe: entries appear atomically by rename. Anything damaged, foreign or in a folder that
/// others may write is a miss with a reason, never an error and never executed.
class ObjectCache {
 public:
  explicit ObjectCache(const std::string& folder);  ///< created with mode 0700 when missing; "" disables the cache
  [[nodiscard]] std::optional<std::string> load(const std::string& symbol);  ///< the object's bytes
  void store(const std::string& symbol, const std::string& object);
  [[nodiscard]] const std::string& warning() const { return warning_; }  ///< the last reason for a miss or lost store

 private:
  std::string folder_;
  std::string warning_;
};

}  // namespace sylvite

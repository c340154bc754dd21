#pragma once
// External tensor data: bytes of files beside the model, mapped read-only.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace sylvite {

/// Where a tensor's bytes lie: the entries of TensorProto.external_data, parsed.
struct ExternalRange {
  std::string location;  ///< relative to the model's folder
  std::int64_t offset = 0;
  std::optional<std::int64_t> length;  ///< absent: to the end of the file
};

/// Maps files of one folder, each once. Only regular files with one hard link, reached without any symbolic
/// link and without "..", are opened: a model must not read what its folder does not hold. Not thread-safe.
class ExternalData {
 public:
  explicit ExternalData(std::string folder) : folder_(std::move(folder)) {}  ///< "" allows no files

  struct Bytes {
    std::shared_ptr<const void> owner;  ///< unmaps when the last user goes
    const std::byte* data = nullptr;
  };
  /// `size` bytes from the range. Throws ModelError (bad path, range outside the file; `what` names the
  /// tensor) or IoError (no such file, or unreadable).
  [[nodiscard]] Bytes map(const ExternalRange& range, std::int64_t size, const std::string& what) const;
  /// False when nothing has that name; a refused path counts as existing so that map() reports it.
  [[nodiscard]] bool exists(const std::string& location) const;

 private:
  struct Mapping;
  [[nodiscard]] std::shared_ptr<const Mapping> open(const std::string& location,
                                                    const std::string& what) const;

  std::string folder_;
  mutable std::map<std::string, std::shared_ptr<const Mapping>> mappings_;
};

}  // namespace sylvite

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

/// Where files that a model names may lie.
struct DataFolder {
  std::string path;  ///< "" allows no files
  std::string linked =
      {};  ///< symbolic links to files right in this folder are followed; absolute, "" for none
};

/// Beside the model; and where the model itself is a link, as in caches of downloads, beside what it leads to.
[[nodiscard]] DataFolder folder_of_model(const std::string& path);

/// Maps files of one folder, each once. Only regular files with one hard link, reached without any symbolic
/// link and without "..", are opened: a model must not read what its folder does not hold. Links are followed into
/// DataFolder::linked, and everywhere when that is asked for. Not thread-safe.
class ExternalData {
 public:
  explicit ExternalData(DataFolder folder, bool follow_links = false)
      : folder_(std::move(folder)), follow_links_(follow_links) {}

  struct Bytes {
    std::shared_ptr<const void> owner;  ///< unmaps when the last user goes
    const std::byte* data = nullptr;
  };
  /// `size` bytes from the range. Throws ModelError (bad path, range outside the file; `what` names the
  /// tensor) or IoError (no such file, or unreadable).
  [[nodiscard]] Bytes map(const ExternalRange& range, std::int64_t size, const std::string& what) const;
  /// False when nothing has that name; a refused path counts as existing so that map() reports it.
  [[nodiscard]] bool exists(const std::string& location) const;
  /// What people look for: the path of a location.
  [[nodiscard]] std::string path_of(const std::string& location) const {
    return folder_.path + "/" + location;
  }

 private:
  struct Mapping;
  [[nodiscard]] std::shared_ptr<const Mapping> open(const std::string& location,
                                                    const std::string& what) const;

  [[nodiscard]] std::string linked_file(const std::string& location) const;

  DataFolder folder_;
  bool follow_links_;
  mutable std::map<std::string, std::shared_ptr<const Mapping>> mappings_;
};

}  // namespace sylvite

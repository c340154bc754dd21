#pragma once
// A folder of one test, gone after it.

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "base/error.h"

namespace sylvite {

class TemporaryFolder {
 public:
  TemporaryFolder() : path_((std::filesystem::temp_directory_path() / "sylvite_test_XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) throw IoError("cannot make a temporary folder '{}'", path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace sylvite

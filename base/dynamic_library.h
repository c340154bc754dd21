#pragma once
// Shared libraries that are opened when something needs them, and may be absent.

#include <string>
#include <vector>

namespace sylvite {

/// An opened library; never closed, because code of it may run until the very end. Copies share it.
class DynamicLibrary {
 public:
  /// Opens the first of `names` that can be opened. Throws UnsupportedError naming `what` and all names.
  DynamicLibrary(const std::string& what, const std::vector<std::string>& names);

  /// Throws UnsupportedError naming the library and the symbol.
  [[nodiscard]] void* symbol(const char* name) const;
  [[nodiscard]] const std::string& name() const { return name_; }  ///< as opened

 private:
  std::string name_;
  void* handle_ = nullptr;
};

}  // namespace sylvite

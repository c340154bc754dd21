#pragma once
// Shared libraries that are opened when something needs them, and may be absent.

#include <string>
#include <type_traits>
#include <vector>

namespace sylvite {

/// A function of a library, whose type only the caller knows: it becomes a pointer to any.
class LibraryFunction {
 public:
  explicit LibraryFunction(void* address) : address_(address) {}
  template <typename Function>
    requires std::is_function_v<Function>
  operator Function*() const {
    return reinterpret_cast<Function*>(address_);
  }

 private:
  void* address_;
};

/// Functions of C libraries that return a status, where 0 is success.
template <typename... Parameters>
using StatusFunction = int (*)(Parameters...);

/// An opened library; never closed, because code of it may run until the very end. Copies share it.
class DynamicLibrary {
 public:
  /// Opens the first of `names` that can be opened. Throws UnsupportedError naming `what` and all names.
  DynamicLibrary(const std::string& what, const std::vector<std::string>& names);

  /// Throws UnsupportedError naming the library and the function.
  [[nodiscard]] LibraryFunction function(const char* name) const;
  [[nodiscard]] const std::string& name() const { return name_; }  ///< as opened

 private:
  std::string name_;
  void* handle_ = nullptr;
};

}  // namespace sylvite

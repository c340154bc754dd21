#include "base/dynamic_library.h"

#include <dlfcn.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace sylvite {

DynamicLibrary::DynamicLibrary(const std::string& what, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    handle_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) continue;
    name_ = name;
    return;
  }
  throw UnsupportedError("{} was not found: none of {} can be opened", what, fmt::join(names, ", "));
}

LibraryFunction DynamicLibrary::function(const char* name) const {
  void* address = ::dlsym(handle_, name);
  if (address == nullptr) throw UnsupportedError("{} has no {}: it is too old", name_, name);
  return LibraryFunction(address);
}

}  // namespace sylvite

#pragma once
// Loads compiled kernels into the process through LLVM ORC and JITLink.

#include <memory>
#include <string>

struct halide_buffer_t;

namespace sylvite {

/// Calls a kernel with its buffers, inputs first. Returns 0, or Halide's error code.
using KernelArgv = int (*)(void** arguments);

/// Code lives as long as the loader. Thread safety: load from one thread at a time.
class ObjectLoader {
 public:
  ObjectLoader();
  ~ObjectLoader();
  ObjectLoader(const ObjectLoader&) = delete;
  ObjectLoader& operator=(const ObjectLoader&) = delete;

  /// Links the object and returns the address of `symbol`_argv, Halide's uniform entry point.
  /// Throws IoError when the object does not link or lacks the symbol.
  [[nodiscard]] KernelArgv load(const std::string& object, const std::string& symbol);

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

}  // namespace sylvite

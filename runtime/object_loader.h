#pragma once
// Loads compiled kernels into the process through LLVM ORC and JITLink.

#include <memory>
#include <string>

namespace sylvite {

/// Halide's uniform entry point. arguments[0] points to a void* (the RunContext), the rest are
/// halide_buffer_t*: inputs, then outputs. Returns 0, or Halide's error code.
using KernelArgv = int (*)(void** arguments);

/// Code lives as long as the loader. All loaders of a process share one copy of Halide's runtime, whose
/// parallel loops and errors go to runtime/threads.h. Thread safety: different loaders are independent; one
/// loader is for one thread at a time.
class ObjectLoader {
 public:
  ObjectLoader();
  ~ObjectLoader();
  ObjectLoader(const ObjectLoader&) = delete;
  ObjectLoader& operator=(const ObjectLoader&) = delete;

  /// Links the object and returns the address of `symbol`_argv. REQUIRES a symbol not yet loaded here.
  /// Throws IoError when the object does not link or lacks the symbol.
  [[nodiscard]] KernelArgv load(const std::string& object, const std::string& symbol);

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

}  // namespace sylvite

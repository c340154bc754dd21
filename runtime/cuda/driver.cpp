#include "runtime/cuda/driver.h"

namespace sylvite::cuda {
namespace {

/// What cuGetErrorName or cuGetErrorString says.
std::string described(const DynamicLibrary& library, const char* function, Result result) {
  const char* text = nullptr;
  const StatusFunction<Result, const char**> name = library.function(function);
  return name(result, &text) == 0 && text != nullptr ? text : "";
}

DynamicLibrary open_library() {
  return {"a CUDA driver", {"libcuda.so.1", "libcuda.so"}};
}

[[noreturn]] void fail(const DynamicLibrary& library, const char* call, Result result) {
  throw CudaError(
      call, result,
      fmt::format("{} failed with {} ({}): {}", call, described(library, "cuGetErrorName", result), result,
                  described(library, "cuGetErrorString", result)));
}

Driver make_driver() {
  Driver made(open_library());
  if (const Result result = made.init.try_call(0); result != 0) {
    throw UnsupportedError("the CUDA driver cannot be used: cuInit: {} ({})",
                           described(made.library, "cuGetErrorName", result), result);
  }
  return made;
}

}  // namespace

const Driver& driver() {
  static const Driver instance = make_driver();
  return instance;
}

void check(const char* call, Result result) {
  if (result != 0) fail(driver().library, call, result);
}

}  // namespace sylvite::cuda

#include "schedules/cuda/nvrtc.h"

#include <vector>

#include "base/dynamic_library.h"
#include "base/error.h"

namespace sylvite::cuda {
namespace {

using Result = int;  // 0 is success
using Program = struct ProgramTag*;

/// The functions in use; their types repeat the library's binary interface.
struct Nvrtc {
  DynamicLibrary library{"NVRTC, the CUDA C++ compiler,",
                         {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}};
  const char* (*error_string)(Result) = library.function("nvrtcGetErrorString");
  StatusFunction<Program*, const char*, const char*, int, const char* const*, const char* const*> create =
      library.function("nvrtcCreateProgram");
  StatusFunction<Program, int, const char* const*> compile = library.function("nvrtcCompileProgram");
  StatusFunction<Program*> destroy = library.function("nvrtcDestroyProgram");
  StatusFunction<Program, std::size_t*> code_size = library.function("nvrtcGetCUBINSize");
  StatusFunction<Program, char*> code = library.function("nvrtcGetCUBIN");
  StatusFunction<Program, std::size_t*> log_size = library.function("nvrtcGetProgramLogSize");
  StatusFunction<Program, char*> log = library.function("nvrtcGetProgramLog");
};

const Nvrtc& nvrtc() {
  static const Nvrtc instance;
  return instance;
}

void check(const char* call, Result result) {
  if (result != 0) throw InternalError("{} failed: {} ({})", call, nvrtc().error_string(result), result);
}

/// A program in compilation.
class Compilation {
 public:
  explicit Compilation(const std::string& source) {
    check("nvrtcCreateProgram", nvrtc().create(&program_, source.c_str(), "kernel.cu", 0, nullptr, nullptr));
  }
  ~Compilation() { (void)nvrtc().destroy(&program_); }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  [[nodiscard]] std::string code(const std::string& architecture) {
    const std::string target = "--gpu-architecture=" + architecture;
    const std::vector<const char*> options = {target.c_str(), "--std=c++17"};
    const Result result = nvrtc().compile(program_, static_cast<int>(options.size()), options.data());
    if (result != 0)
      throw CompileError("CUDA C++ text does not compile: {}:\n{}", nvrtc().error_string(result),
                         read("nvrtcGetProgramLog", nvrtc().log_size, nvrtc().log));
    return read("nvrtcGetCUBIN", nvrtc().code_size, nvrtc().code);
  }

 private:
  template <typename Size, typename Copy>
  std::string read(const char* what, Size size_of, Copy copy) {
    std::size_t size = 0;
    check(what, size_of(program_, &size));
    std::string bytes(size, '\0');
    check(what, copy(program_, bytes.data()));
    return bytes;
  }

  Program program_ = nullptr;
};

}  // namespace

std::string compile_cuda(const CudaSource& source) {
  return Compilation(source.text).code(source.architecture);
}

CudaObject compile_cuda(CudaTemplate made) {
  if (made.launch.library) return {std::move(made.launch), "", ""};
  std::string image = compile_cuda(made.source);
  return {std::move(made.launch), std::move(image), std::move(made.source.architecture)};
}

const std::string& missing_nvrtc() {
  static const std::string reason = [] {
    try {
      (void)nvrtc();
      return std::string();
    } catch (const UnsupportedError& error) {
      return std::string(error.what());
    }
  }();
  return reason;
}

}  // namespace sylvite::cuda

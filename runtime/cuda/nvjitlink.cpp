#include "runtime/cuda/nvjitlink.h"

#include <cstdint>

#include "base/dynamic_library.h"
#include "base/error.h"

namespace sylvite::cuda {
namespace {

using Result = int;  // 0 is success
using Handle = struct HandleTag*;

/// The functions in use; their types repeat the library's binary interface.
struct NvJitLink {
  DynamicLibrary library{"nvJitLink, the CUDA linker,",
                         {"libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so"}};
  StatusFunction<Handle*, std::uint32_t, const char**> create = library.function("nvJitLinkCreate");
  StatusFunction<Handle*> destroy = library.function("nvJitLinkDestroy");
  StatusFunction<Handle, int, const void*, std::size_t, const char*> add =
      library.function("nvJitLinkAddData");
  StatusFunction<Handle> complete = library.function("nvJitLinkComplete");
  StatusFunction<Handle, std::size_t*> code_size = library.function("nvJitLinkGetLinkedCubinSize");
  StatusFunction<Handle, void*> code = library.function("nvJitLinkGetLinkedCubin");
  StatusFunction<Handle, std::size_t*> log_size = library.function("nvJitLinkGetErrorLogSize");
  StatusFunction<Handle, char*> log = library.function("nvJitLinkGetErrorLog");
};

const NvJitLink& linker_library() {
  static const NvJitLink instance;
  return instance;
}

/// One link.
class Link {
 public:
  explicit Link(const std::string& architecture) {
    const std::string option = "-arch=" + architecture;
    const char* options[] = {option.c_str()};
    check("nvJitLinkCreate", linker_library().create(&handle_, 1, options));
  }
  ~Link() {
    if (handle_ != nullptr) (void)linker_library().destroy(&handle_);
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  [[nodiscard]] std::string cubin(const std::string& ptx) {
    constexpr int input_ptx = 2;
    check("nvJitLinkAddData",
          linker_library().add(handle_, input_ptx, ptx.c_str(), ptx.size() + 1, "kernel.ptx"));
    check("nvJitLinkComplete", linker_library().complete(handle_));
    std::size_t size = 0;
    check("nvJitLinkGetLinkedCubinSize", linker_library().code_size(handle_, &size));
    std::string bytes(size, '\0');
    check("nvJitLinkGetLinkedCubin", linker_library().code(handle_, bytes.data()));
    return bytes;
  }

 private:
  void check(const char* call, Result result) {
    if (result == 0) return;
    std::size_t size = 0;
    std::string log;
    if (handle_ != nullptr && linker_library().log_size(handle_, &size) == 0 && size > 0) {
      log.resize(size);
      (void)linker_library().log(handle_, log.data());
    }
    throw CompileError("{} failed with {}: {}", call, result, log.c_str());
  }

  Handle handle_ = nullptr;
};

}  // namespace

std::string assemble_ptx(const std::string& ptx, const std::string& architecture) {
  return Link(architecture).cubin(ptx);
}

}  // namespace sylvite::cuda

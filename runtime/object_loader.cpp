#include "runtime/object_loader.h"

#include <HalideRuntime.h>
#include <fmt/format.h>
#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/Support/MemoryBuffer.h>

#include <atomic>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "base/amx.h"
#include "base/error.h"
#include "runtime/cuda/recorder.h"
#include "runtime/embedded.h"
#include "runtime/export/embed/first_places.h"
#include "runtime/scratch.h"
#include "runtime/threads.h"

namespace sylvite {
namespace {

using namespace llvm::orc;

/// The value, or IoError saying what was being done.
template <typename T>
T value_of(llvm::Expected<T> result, std::string_view doing) {
  if (!result) throw IoError("{}: {}", doing, llvm::toString(result.takeError()));
  return static_cast<T&&>(*result);
}

void check_llvm(llvm::Error error, std::string_view doing) {
  if (error) throw IoError("{}: {}", doing, llvm::toString(std::move(error)));
}

/// The process's one linker session, with Halide's runtime in it. Never destroyed: code may run until the
/// very end.
class Linker {
 public:
  static Linker& instance() {
    static auto* linker = new Linker();
    return *linker;
  }

  JITDylib& new_library() {
    static std::atomic<int> sequence{0};
    JITDylib& library = value_of(session_.createJITDylib(fmt::format("kernels{}", sequence++)), "linker");
    library.addToLinkOrder(*device_runtime_);
    library.addToLinkOrder(*runtime_);
    return library;
  }

  void remove(JITDylib& library) { check_llvm(session_.removeJITDylib(library), "unloading kernels"); }

  void add(JITDylib& library, std::string_view object, const std::string& name) {
    auto buffer = llvm::MemoryBuffer::getMemBufferCopy({object.data(), object.size()}, name);
    check_llvm(layer_.add(library, std::move(buffer)), "linking " + name);
  }

  void* find(JITDylib& library, const std::string& symbol) {
    return value_of(session_.lookup({&library}, symbol), "linking " + symbol).getAddress().toPtr<void*>();
  }

 private:
  Linker() : session_(value_of(SelfExecutorProcessControl::Create(), "linker")), layer_(session_) {
    session_.setErrorReporter(
        [](llvm::Error error) { llvm::consumeError(std::move(error)); });  // lookups report too
    runtime_ = &value_of(session_.createJITDylib("halide_runtime"), "linker");
    runtime_->addGenerator(value_of(DynamicLibrarySearchGenerator::GetForCurrentProcess('\0'), "linker"));
    add(*runtime_, embedded::halide_runtime, "Halide's runtime");
    const auto set_parallel_for = reinterpret_cast<decltype(&halide_set_custom_do_par_for)>(
        find(*runtime_, "halide_set_custom_do_par_for"));
    const auto set_error_handler =
        reinterpret_cast<decltype(&halide_set_error_handler)>(find(*runtime_, "halide_set_error_handler"));
    const auto set_malloc =
        reinterpret_cast<decltype(&halide_set_custom_malloc)>(find(*runtime_, "halide_set_custom_malloc"));
    const auto set_free =
        reinterpret_cast<decltype(&halide_set_custom_free)>(find(*runtime_, "halide_set_custom_free"));
    set_parallel_for(parallel_for);
    set_malloc(take_scratch);
    set_free(give_scratch);
    set_error_handler(report_kernel_error);
    define_device_runtime();
    define(*runtime_, {{"sylvite_first_places", reinterpret_cast<void*>(sylvite_first_places)}});
    static_cast<void>(request_amx());  // no target has AMX where this is refused
  }

  /// What Halide's CUDA runtime would be: kernels find it before Halide's own functions for devices.
  void define_device_runtime() {
    device_runtime_ = &value_of(session_.createJITDylib("device_runtime"), "linker");
    define(*device_runtime_, cuda::recorder_symbols());
  }

  void define(JITDylib& library, const std::vector<std::pair<const char*, void*>>& functions) {
    SymbolMap symbols;
    for (const auto& [name, address] : functions) {
      symbols[session_.intern(name)] = {ExecutorAddr::fromPtr(address),
                                        llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    }
    check_llvm(library.define(absoluteSymbols(std::move(symbols))), "linker");
  }

  ExecutionSession session_;
  ObjectLinkingLayer layer_;
  JITDylib* runtime_ = nullptr;
  JITDylib* device_runtime_ = nullptr;
};

}  // namespace

struct ObjectLoader::Rep {
  JITDylib& library = Linker::instance().new_library();
};

ObjectLoader::ObjectLoader() : rep_(std::make_unique<Rep>()) {}

ObjectLoader::~ObjectLoader() {
  try {
    Linker::instance().remove(rep_->library);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the code stays loaded: nothing else is lost
  }
}

KernelArgv ObjectLoader::load(const std::string& object, const std::string& symbol) {
  Linker& linker = Linker::instance();
  linker.add(rep_->library, object, symbol);
  return reinterpret_cast<KernelArgv>(linker.find(rep_->library, symbol + "_argv"));
}

}  // namespace sylvite

#include "schedules/compile.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/sanitizer.h"
#include "lowering/algorithms/algorithm.h"
#include "lowering/algorithms/bf16_rounding.h"
#include "schedules/code_id.h"
#include "schedules/cuda/candidate.h"
#include "schedules/cuda/nvrtc.h"
#include "schedules/directives/device_library.h"
#include "schedules/directives/load_on_device.h"
#include "schedules/directives/merge_checks.h"
#include "schedules/directives/own_directives.h"
#include "schedules/directives/wide_access.h"
#include "schedules/machine.h"

namespace sylvite {
namespace {

/// Halide compiles on a stack of its own, of which AddressSanitizer knows nothing: marks of frames that an exception of
/// ours leaves would stay there, and later frames be reported in their place.
[[maybe_unused]] const bool compiles_on_known_stacks = [] {
  if (has_address_sanitizer) Halide::set_compiler_stack_size(0);
  return has_address_sanitizer;
}();

/// A file in memory that has a name, because the code generator writes to names. It needs no folder and is gone with
/// the process, however that ends.
class MemoryFile {
 public:
  MemoryFile() : file_(::memfd_create("sylvite-object", MFD_CLOEXEC)) {
    if (file_ < 0) throw IoError("cannot make a file in memory: {}", std::strerror(errno));
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(file_); }
  [[nodiscard]] std::string path() const { return fmt::format("/proc/self/fd/{}", file_); }
  [[nodiscard]] std::string read() const { return read_file(path()); }

 private:
  int file_;
};

/// Warnings of Halide's are about style of schedules. Errors are what Halide's own reporter throws.
class QuietReporter : public Halide::CompileTimeErrorReporter {
 public:
  QuietReporter() { Halide::set_custom_compile_time_error_reporter(this); }
  void warning(const char* /*message*/) override {}
  [[noreturn]] void error(const char* message) override { throw Halide::CompileError(message); }
};
QuietReporter reporter;  // set before any thread compiles

bool needs_large_buffers(const Kernel& kernel) {
  constexpr std::int64_t limit = std::numeric_limits<std::int32_t>::max();
  for (const Value& value : kernel.body.values())
    if (value.type.byte_size() > limit) return true;
  return false;
}

Halide::Target target_for(const Kernel& kernel, const std::string& target) {
  Halide::Target result(target);
  result = result.with_feature(Halide::Target::NoRuntime).with_feature(Halide::Target::UserContext);
  if (!is_gpu_target(target))
    result = result.with_feature(Halide::Target::NoBoundsQuery);  // which nobody asks
  return needs_large_buffers(kernel) ? result.with_feature(Halide::Target::LargeBuffers) : result;
}

}  // namespace

std::string symbol_name(const Kernel& kernel, const Candidate& candidate, const std::string& target) {
  return "sylvite_" +
         short_hash(fmt::format("{}\n{}\n{}\n{}", kernel.text, candidate.to_string(), target, code_id));
}

std::string compile_to_object(const Kernel& kernel, const Candidate& candidate, const std::string& target) {
  if (auto made = cuda_template_of(kernel, candidate)) return to_bytes(cuda::compile_cuda(std::move(*made)));
  const MemoryFile file;
  try {
    const bool rounds_by_instruction = !is_gpu_target(target) && has_bf16_instructions(target);
    const Bf16InstructionScope rounding(rounds_by_instruction);
    Algorithm algorithm = build_algorithm(kernel, candidate.form);
    candidate.schedule.apply(algorithm);
    std::vector<Halide::Argument> arguments(algorithm.inputs.begin(), algorithm.inputs.end());
    arguments.insert(arguments.end(), algorithm.sizes.begin(), algorithm.sizes.end());
    Halide::Pipeline pipeline(algorithm.outputs);
    add_own_passes(candidate.schedule, algorithm, target, pipeline);
    // The pipeline owns its passes.
    if (rounds_by_instruction) pipeline.add_custom_lowering_pass(new RoundByInstruction());
    if (is_gpu_target(target)) {
      pipeline.add_custom_lowering_pass(new DeviceLibrary());
      pipeline.add_custom_lowering_pass(new LoadOnDevice());
      pipeline.add_custom_lowering_pass(new WideAccess());
    } else {
      pipeline.add_custom_lowering_pass(new MergeChecks());
    }
    pipeline.compile_to_object(file.path(), arguments, symbol_name(kernel, candidate, target),
                               target_for(kernel, target));
  } catch (const Halide::Error& error) {
    throw CompileError("kernel {}: {}", kernel.id, error.what());
  }
  return file.read();
}

}  // namespace sylvite

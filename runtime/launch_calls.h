#pragma once
// The launches of a program as calls, whose arguments lie where the program's bindings say.

#include <HalideRuntime.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "runtime/cuda/device_program.h"
#include "runtime/host_room.h"
#include "runtime/kernel_call.h"
#include "runtime/program_code.h"
#include "runtime/state_memory.h"
#include "runtime/threads.h"

namespace sylvite {

/// A kernel cannot be launched. Throws KernelError, which names it.
[[noreturn]] void refuse_launch(const Launch& launch, const std::string& reason);

/// Thread safety: one thread at a time, but for calls of different launches, which may run at once.
class LaunchCalls {
 public:
  /// All of these must live as long. Arguments in the arena follow `host`. Throws UnsupportedError where a kernel does not serve
  /// the sizes of `bindings`.
  LaunchCalls(const ProgramCode& code, const Bindings& bindings, HostRoom& host, const StateMemory& states);

  /// Numbers of the bindings are others, and `host` begins anew. REQUIRES launches without windows.
  void rebind();

  /// Where an input or an output of the plan lies in the next calls.
  void set_input(std::size_t number, const void* data) { set_all(input_uses_.at(number), data); }
  void set_output(std::size_t number, const void* data) { set_all(output_uses_.at(number), data); }

  /// Runs a launch on the CPU, in a loop at that trip. Throws KernelError.
  void run(std::size_t number, std::int64_t trip);
  /// What it launches on a device. Throws KernelError.
  [[nodiscard]] NotedLaunches note(std::size_t number, cuda::LaunchRecorder& recorder);
  [[nodiscard]] std::size_t size() const { return calls_.size(); }
  [[nodiscard]] RunContext& context() { return context_; }  ///< of all calls

 private:
  /// An argument that moves with the trips of a loop.
  struct Moving {
    halide_buffer_t* buffer = nullptr;
    std::uint8_t* start = nullptr;  ///< where an offset of 0 is
    Window window;
  };
  using Uses = std::vector<halide_buffer_t*>;

  static void set_all(const Uses& uses, const void* data);
  void add_arguments(KernelCall& call, const BoundLaunch& launch, std::vector<Moving>& moves);
  void bind(halide_buffer_t& buffer, const Location& place);

  const ProgramCode& code_;
  const Bindings& bindings_;
  HostRoom& host_;
  const StateMemory& states_;
  RunContext context_;
  std::deque<KernelCall> calls_;             ///< per launch
  std::vector<std::vector<Moving>> moving_;  ///< per launch
  std::vector<Uses> input_uses_, output_uses_;
};

}  // namespace sylvite

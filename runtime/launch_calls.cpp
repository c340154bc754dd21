#include "runtime/launch_calls.h"

#include <utility>

#include "base/error.h"
#include "runtime/cuda/recorder.h"
#include "runtime/program.h"

namespace sylvite {
namespace {

void set_host(halide_buffer_t& buffer, const void* data) {
  buffer.host = static_cast<std::uint8_t*>(const_cast<void*>(data));
}

}  // namespace

void refuse_launch(const Launch& launch, const std::string& reason) {
  throw KernelError(static_cast<std::size_t>(launch.kernel),
                    fmt::format("kernel '{}' cannot be launched: {}", launch.name, reason));
}

LaunchCalls::LaunchCalls(const ProgramCode& code, const Bindings& bindings, HostRoom& host,
                         const StateMemory& states)
    : code_(code),
      bindings_(bindings),
      host_(host),
      states_(states),
      context_(code.options.threads),
      moving_(code.plan->launches.size()),
      input_uses_(code.plan->inputs.size()),
      output_uses_(code.plan->outputs.size()) {
  std::vector<LoadedKernel> kernels = kernels_of_launches(code, bindings);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const BoundLaunch& launch = bindings.launches[i];
    KernelCall& call =
        calls_.emplace_back(std::move(kernels[i]), context_, launch.arguments.size() + launch.sizes.size());
    add_arguments(call, launch, moving_[i]);
  }
}

void LaunchCalls::add_arguments(KernelCall& call, const BoundLaunch& launch, std::vector<Moving>& moves) {
  moves.reserve(launch.arguments.size());  // the room keeps where they are
  for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
    if (i == launch.inputs)
      for (const std::int64_t size : launch.sizes) call.add_size(size);
    const Argument& argument = launch.arguments[i];
    halide_buffer_t& buffer = call.add_argument(argument.dtype, argument.stored, argument.has_outer_blocks);
    bind(buffer, argument.place);
    const auto& window = argument.window;
    if (!window) continue;
    Moving& move = moves.emplace_back(&buffer, buffer.host, *window);
    if (argument.place.kind == BufferKind::arena)
      host_.add_use(&move.start, argument.place.number - window->offset(0));
    else
      move.start -= window->offset(0);
  }
}

void LaunchCalls::rebind() {
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    const BoundLaunch& launch = bindings_.launches[i];
    KernelCall& call = calls_[i];
    for (std::size_t k = 0; k < launch.sizes.size(); ++k) call.change_size(k, launch.sizes[k]);
    for (std::size_t k = 0; k < launch.arguments.size(); ++k) {
      const Argument& argument = launch.arguments[k];
      call.change_argument(k, argument.stored, argument.has_outer_blocks);
      const bool is_of_caller =
          argument.place.kind == BufferKind::input || argument.place.kind == BufferKind::output;
      if (!is_of_caller) bind(call.buffers()[k], argument.place);
    }
  }
}

/// An argument lies at `place`: on a device in the words of noted launches.
void LaunchCalls::bind(halide_buffer_t& buffer, const Location& place) {
  if (code_.options.on_device) {
    buffer.device = cuda::encode_address(symbolic(place));
    return;
  }
  const auto number = static_cast<std::size_t>(place.number);
  switch (place.kind) {
    case BufferKind::weight:
      set_host(buffer, weight_of(bindings_, number).data());
      break;
    case BufferKind::input:
      input_uses_.at(number).push_back(&buffer);
      break;
    case BufferKind::output:
      output_uses_.at(number).push_back(&buffer);
      break;
    case BufferKind::arena:
      host_.add_use(&buffer.host, place.number);
      break;
    case BufferKind::state:
      set_host(buffer, states_.host_data() + number);
      break;
  }
}

void LaunchCalls::set_all(const Uses& uses, const void* data) {
  for (halide_buffer_t* use : uses) set_host(*use, data);
}

void LaunchCalls::run(std::size_t number, std::int64_t trip) {
  for (const Moving& each : moving_[number]) each.buffer->host = each.start + each.window.offset(trip);
  if (bindings_.launches[number].is_empty) return;
  const Launch& launch = code_.plan->launches[number];
  if (const int status = calls_[number].run(); status != 0) {
    throw KernelError(
        static_cast<std::size_t>(launch.kernel),
        fmt::format("kernel '{}' failed with status {}: {}", launch.name, status, context_.take_error()));
  }
}

NotedLaunches LaunchCalls::note(std::size_t number, cuda::LaunchRecorder& recorder) {
  if (bindings_.launches[number].is_empty) return {};
  const Launch& launch = code_.plan->launches[number];
  cuda::Recording recording;
  try {
    recording = calls_[number].note(recorder);
  } catch (const CompileError& error) {
    refuse_launch(launch, error.what());
  }
  if (recording.status != 0)
    refuse_launch(launch, fmt::format("status {}: {}", recording.status, context_.take_error()));
  return std::move(recording.launches);
}

}  // namespace sylvite

#include "runtime/cuda/recorder.h"

#include <HalideRuntime.h>

#include <algorithm>
#include <exception>

#include "base/error.h"
#include "base/rounding.h"
#include "runtime/threads.h"

namespace sylvite::cuda {
namespace {

constexpr std::int64_t most_threads = 1024;

/// The recorder whose kernel runs on this thread, and what it threw: exceptions cannot pass compiled code.
thread_local LaunchRecorder* active = nullptr;
thread_local std::exception_ptr failure;

/// Runs `body`, keeping its exception; returns a Halide error code.
template <typename Body>
int guarded(Body body) {
  constexpr int generic_error = -1;
  try {
    body();
    return 0;
  } catch (...) {
    if (!failure) failure = std::current_exception();
    return generic_error;
  }
}

const void* device_interface() {
  static const int any_address = 0;
  return &any_address;
}

/// The state of a kernel is its image, a null-terminated text inside the loaded object.
int initialize_kernels(void* /*context*/, void** state, const char* source, int /*size*/) {
  *state = const_cast<char*>(source);
  return 0;
}

void finalize_kernels(void* /*context*/, void* /*state*/) {}

NotedArgument note_argument(const void* argument, std::size_t size, bool is_buffer) {
  if (is_buffer) return PointerArgument{{static_cast<const halide_buffer_t*>(argument)->device}};
  const auto* bytes = static_cast<const std::byte*>(argument);
  return BytesArgument(bytes, bytes + size);
}

int run(void* /*context*/, void* state, const char* name, int blocks_x, int blocks_y, int blocks_z,
        int threads_x, int threads_y, int threads_z, int shared_bytes, const std::size_t* sizes,
        void** arguments, const std::int8_t* is_buffer) {
  return guarded([&] {
    const std::int64_t threads = std::int64_t{threads_x} * threads_y * threads_z;
    if (threads > most_threads) {
      throw CompileError("the schedule wants blocks of {} threads; there are {} at most", threads,
                         most_threads);
    }
    NotedLaunch launch;
    launch.image = active->image_of(static_cast<const char*>(state));
    launch.function = name;
    const int grid[] = {blocks_x, blocks_y, blocks_z};
    const int block[] = {threads_x, threads_y, threads_z};
    std::ranges::copy(grid, launch.shape.grid);
    std::ranges::copy(block, launch.shape.block);
    launch.shape.shared_bytes = static_cast<unsigned>(shared_bytes);
    for (std::size_t i = 0; sizes[i] != 0; ++i)
      launch.arguments.push_back(note_argument(arguments[i], sizes[i], is_buffer[i] != 0));
    active->add(std::move(launch));
  });
}

int copy_to_device(void* context, halide_buffer_t* buffer, const void* /*interface*/) {
  if (buffer->device != 0) return 0;
  report_kernel_error(context, "a stage on the GPU reads what a stage on the host wrote");
  return halide_error_code_copy_to_device_failed;
}

int copy_to_host(void* context, halide_buffer_t* /*buffer*/) {
  report_kernel_error(context, "a stage on the host reads what a stage on the GPU wrote");
  return halide_error_code_copy_to_host_failed;
}

int device_malloc(void* /*context*/, halide_buffer_t* buffer, const void* /*interface*/) {
  if (buffer->device != 0) return 0;
  return guarded([&] { buffer->device = active->scratch().take(buffer->size_in_bytes()); });
}

int device_free(void* /*context*/, halide_buffer_t* buffer) {
  if (buffer->device != 0) active->scratch().give_back(buffer->device);
  buffer->device = 0;
  return 0;
}

void device_free_as_destructor(void* context, void* buffer) {
  device_free(context, static_cast<halide_buffer_t*>(buffer));
}

}  // namespace

std::uint64_t ScratchPlaces::take(std::size_t bytes) {
  constexpr std::size_t alignment = 256;
  const std::size_t wanted = round_up(std::max<std::size_t>(bytes, 1), alignment);
  Block* best = nullptr;
  for (Block& block : blocks_) {
    const bool fits = !block.is_taken && block.size >= wanted;
    if (fits && (best == nullptr || block.size < best->size)) best = &block;
  }
  if (best == nullptr) {
    best = &blocks_.emplace_back(Block{size_, wanted});
    size_ += wanted;
  }
  best->is_taken = true;
  return encode_address({Region::scratch, 0, best->offset});
}

void ScratchPlaces::give_back(std::uint64_t word) {
  const SymbolicAddress address = decode_address(word);
  for (Block& block : blocks_)
    if (block.offset == address.offset) block.is_taken = false;
}

Image LaunchRecorder::image_of(std::string_view text) {
  const auto found = std::ranges::find_if(images_, [&](const Image& image) { return *image == text; });
  return found != images_.end() ? *found : images_.emplace_back(std::make_shared<const std::string>(text));
}

Recording LaunchRecorder::record(KernelArgv entry, void** arguments) {
  Recording recording;
  recording_ = &recording;
  active = this;
  failure = nullptr;
  recording.status = entry(arguments);
  active = nullptr;
  recording_ = nullptr;
  if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
  return recording;
}

std::vector<std::pair<const char*, void*>> recorder_symbols() {
  const auto address = [](auto* function) { return reinterpret_cast<void*>(function); };
  return {
      {"halide_cuda_device_interface", address(device_interface)},
      {"halide_cuda_initialize_kernels", address(initialize_kernels)},
      {"halide_cuda_finalize_kernels", address(finalize_kernels)},
      {"halide_cuda_run", address(run)},
      {"halide_copy_to_device", address(copy_to_device)},
      {"halide_copy_to_host", address(copy_to_host)},
      {"halide_device_malloc", address(device_malloc)},
      {"halide_device_free", address(device_free)},
      {"halide_device_free_as_destructor", address(device_free_as_destructor)},
  };
}

}  // namespace sylvite::cuda

#include "runtime/kernel_call.h"

#include <utility>

#include "base/error.h"
#include "lowering/algorithms/halide_types.h"
#include "lowering/plan/storage_order.h"
#include "schedules/cuda/candidate.h"

namespace sylvite {

LoadedKernel load_kernel(ObjectLoader& loader, const std::string& object, const std::string& symbol,
                         bool on_device) {
  if (!is_cuda_object(object)) return {loader.load(object, symbol), nullptr, nullptr};
  if (!on_device) throw IoError("kernel {} is compiled for a GPU, and the program runs on the CPU", symbol);
  const auto launched = std::make_shared<const CudaObject>(parse_cuda_object(object));
  return {nullptr, launched, {launched, &launched->launch}};
}

LoadedKernel loaded_for(LoadedKernel loaded, const Kernel& kernel, const Candidate& candidate) {
  if (loaded.launched && kernel.open)
    loaded.launch = std::make_shared<const LaunchSpec>(cuda_template_of(kernel, candidate).value().launch);
  return loaded;
}

namespace {

/// Halide counts dims from the innermost.
void set_dims(std::vector<halide_dimension_t>& dims, const Dims& stored, bool has_outer_blocks) {
  const Dims strides = storage_strides(stored, has_outer_blocks);
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const std::size_t axis = stored.size() - 1 - i;
    dims[i] = {0, static_cast<std::int32_t>(stored[axis]), static_cast<std::int32_t>(strides[axis])};
  }
}

}  // namespace

KernelCall::KernelCall(LoadedKernel kernel, RunContext& context, std::size_t most)
    : kernel_(std::move(kernel)), context_(&context), most_(most), arguments_{static_cast<void*>(&context_)} {
  dims_.reserve(most);
  buffers_.reserve(most);
  sizes_.reserve(most);
  arguments_.reserve(most + 1);
}

halide_buffer_t& KernelCall::add_argument(DType dtype, const Dims& stored, bool has_outer_blocks) {
  if (arguments_.size() > most_) throw InternalError("a kernel has more than {} arguments", most_);
  std::vector<halide_dimension_t>& dims = dims_.emplace_back(stored.size());
  set_dims(dims, stored, has_outer_blocks);
  halide_buffer_t& buffer = buffers_.emplace_back();
  buffer.type = halide_type_of(dtype);
  buffer.dimensions = static_cast<std::int32_t>(dims.size());
  buffer.dim = dims.data();
  arguments_.push_back(&buffer);
  return buffer;
}

void KernelCall::change_argument(std::size_t number, const Dims& stored, bool has_outer_blocks) {
  set_dims(dims_[number], stored, has_outer_blocks);
}

void KernelCall::add_size(std::int64_t size) {
  if (arguments_.size() > most_) throw InternalError("a kernel has more than {} arguments", most_);
  arguments_.push_back(&sizes_.emplace_back(static_cast<std::int32_t>(size)));
}

cuda::Recording KernelCall::note(cuda::LaunchRecorder& recorder) {
  if (!kernel_.launched) return recorder.record(kernel_.entry, arguments_.data());
  std::vector<std::uint64_t> words;
  words.reserve(buffers_.size());
  for (const halide_buffer_t& buffer : buffers_) words.push_back(buffer.device);
  return {0, {cuda::note_launch(kernel_.launched, *kernel_.launch, words)}};
}

}  // namespace sylvite

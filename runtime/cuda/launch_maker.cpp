#include "runtime/cuda/launch_maker.h"

#include <cstring>

#include "base/error.h"

namespace sylvite::cuda {
namespace {

constexpr unsigned default_shared_limit = 48 << 10;

TensorMap encode(const CudaTensorMap& map, DevicePointer address) {
  constexpr int no_interleave = 0;
  constexpr int promote_to_256_bytes = 3;  // of L2
  constexpr int zeros_outside = 0;
  std::uint64_t dims[4];
  std::uint64_t pitches[3];
  std::uint32_t box[4];
  const std::uint32_t steps[4] = {1, 1, 1, 1};
  for (int i = 0; i < 4; ++i) {
    dims[i] = static_cast<std::uint64_t>(map.dims[i]);
    box[i] = static_cast<std::uint32_t>(map.box[i]);
    if (i < 3) pitches[i] = static_cast<std::uint64_t>(map.pitches[i]);
  }
  TensorMap encoded;
  auto* start = reinterpret_cast<void*>(address + static_cast<DevicePointer>(map.offset));
  if (map.windows) {
    const CudaWindows& windows = *map.windows;
    const std::uint32_t window_steps[4] = {1, static_cast<std::uint32_t>(windows.step[0]),
                                           static_cast<std::uint32_t>(windows.step[1]), 1};
    driver().tensor_map_windows(&encoded, driver_map_type(map), 4, start, dims, pitches, windows.first,
                                windows.last, box[0], box[1], window_steps, no_interleave,
                                driver_map_swizzle(map.swizzle), promote_to_256_bytes, zeros_outside);
  } else {
    driver().tensor_map_tiled(&encoded, driver_map_type(map), 4, start, dims, pitches, box, steps,
                              no_interleave, driver_map_swizzle(map.swizzle), promote_to_256_bytes,
                              zeros_outside);
  }
  return encoded;
}

template <typename T>
void put(std::vector<std::byte>& bytes, std::size_t number, const T& value) {
  std::memcpy(bytes.data() + number * sizeof(T), &value, sizeof(T));
}

/// Writes one parameter's bytes, over those of other addresses if there are any.
struct ArgumentBytes {
  const Regions& regions;
  std::vector<std::byte>& target;

  void operator()(const BytesArgument& bytes) const { target = bytes; }
  void operator()(const PointerArgument& pointers) const {
    target.resize(pointers.words.size() * sizeof(DevicePointer));
    for (std::size_t i = 0; i < pointers.words.size(); ++i) {
      const std::uint64_t word = pointers.words[i];
      put(target, i, is_address(word) ? regions.at(decode_address(word)) : DevicePointer{word});
    }
  }
  void operator()(const MapArgument& map) const {
    target.resize(sizeof(TensorMap));
    put(target, 0, map.map.argument < 0 ? TensorMap{} : encode(map.map, regions.at(map.address)));
  }
};

}  // namespace

int driver_map_type(const CudaTensorMap& map) {
  switch (map.dtype) {
    case DType::boolean:
      return 0;
    case DType::f16:
      return 6;
    case DType::f32:
      return map.rounds_to_tf32 ? 11 : 7;
    case DType::bf16:
      return 9;
    default:
      throw InternalError("no tensor map of {}", dtype_name(map.dtype));
  }
}

int driver_map_swizzle(int bytes) {
  return bytes == 128 ? 3 : bytes == 64 ? 2 : bytes == 32 ? 1 : 0;
}

DevicePointer Regions::at(const SymbolicAddress& address) const {
  switch (address.region) {
    case Region::weight:
      return weights.at(address.number) + address.offset;
    case Region::input:
      return inputs.at(address.number) + address.offset;
    case Region::output:
      return outputs.at(address.number) + address.offset;
    case Region::arena:
      return arena + address.offset;
    case Region::scratch:
      return scratch + address.offset;
    case Region::state:
      return states + address.offset;
    case Region::value:
      return values.at(address.number) + address.offset;
  }
  throw InternalError("corrupt region {}", static_cast<int>(address.region));
}

Launch LaunchMaker::make_library(const NotedLaunch& noted, const Regions& regions) {
  const std::vector<std::uint64_t>& words = std::get<PointerArgument>(noted.arguments.at(0)).words;
  const auto address = [&](int argument) -> DevicePointer {
    if (argument < 0) return 0;
    return regions.at(decode_address(words.at(static_cast<std::size_t>(argument))));
  };
  Launch launch;
  launch.enqueue =
      std::visit([&](const auto& call) { return bind(noted.library, call, address); }, *noted.library);
  return launch;
}

std::function<void(StreamHandle)> LaunchMaker::bind(const std::shared_ptr<const LibraryCall>& call,
                                                    const LibraryMatmul& matmul, const AddressOf& address) {
  const LibraryMatmulProblem& problem = matmul.problem;
  const Product& product = products_.try_emplace(call, problem, matmul.algorithm).first->second;
  const auto first = [&](const MatmulOperand& operand) {
    return address(operand.input) + static_cast<DevicePointer>(operand.offset) * dtype_size(problem.element);
  };
  const CublasLtMatmul::Arguments arguments = {first(problem.a), first(problem.b),
                                               address(problem.epilogue.bias), address(problem.out_argument),
                                               product.workspace.address()};
  return [&product, algorithm = matmul.algorithm, arguments](StreamHandle stream) {
    product.matmul.run(algorithm, arguments, stream);
  };
}

std::function<void(StreamHandle)> LaunchMaker::bind(const std::shared_ptr<const LibraryCall>& call,
                                                    const LibraryConv& conv, const AddressOf& address) {
  const LibraryConvProblem& problem = conv.problem;
  Convolution& made = convolutions_.try_emplace(call, problem, conv.engine).first->second;
  return made.conv.bind(conv.engine, {address(problem.images_argument), address(problem.filter_argument),
                                      address(problem.bias_argument), address(problem.residual_argument),
                                      address(problem.out_argument), made.workspace.address()});
}

void LaunchMaker::load(const NotedLaunch& noted) {
  if (!noted.library) (void)modules_->of(noted.image);
}

Launch LaunchMaker::make(const NotedLaunch& noted, const Regions& regions) {
  Launch launch;
  if (!noted.library) {
    launch.function = modules_->of(noted.image).function(noted.function);
    launch.shape = noted.shape;
    if (noted.shape.shared_bytes > default_shared_limit)
      allow_shared(launch.function, noted.shape.shared_bytes);
    launch.arguments.resize(noted.arguments.size());
  }
  move(launch, noted, regions);
  return launch;
}

void LaunchMaker::move(Launch& launch, const NotedLaunch& noted, const Regions& regions) {
  if (noted.library) {
    launch = make_library(noted, regions);
    return;
  }
  for (std::size_t i = 0; i < noted.arguments.size(); ++i)
    std::visit(ArgumentBytes{regions, launch.arguments[i]}, noted.arguments[i]);
}

}  // namespace sylvite::cuda

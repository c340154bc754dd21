#pragma once
// Noted launches -> launches of the driver: modules are loaded and symbolic addresses become real ones.

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/cudnn.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/modules.h"
#include "runtime/cuda/noted_launch.h"

namespace sylvite::cuda {

/// Where the regions of one program lie on the device; 0 where there is nothing.
struct Regions {
  std::vector<DevicePointer> weights;  ///< per slot
  std::vector<DevicePointer> inputs;
  std::vector<DevicePointer> outputs;
  std::vector<DevicePointer> values;
  DevicePointer arena = 0;
  DevicePointer scratch = 0;
  DevicePointer states = 0;

  /// Throws std::out_of_range for a number that the program does not have.
  [[nodiscard]] DevicePointer at(const SymbolicAddress& address) const;
};

/// CUtensorMapDataType of its elements, and CUtensorMapSwizzle of a swizzle in bytes.
[[nodiscard]] int driver_map_type(const CudaTensorMap& map);
[[nodiscard]] int driver_map_swizzle(int bytes);

/// Owns the library kernels of the launches it makes, each loaded once. REQUIRES a current context. Thread safety: one thread
/// at a time.
class LaunchMaker {
 public:
  explicit LaunchMaker(std::shared_ptr<Modules> modules = std::make_shared<Modules>())
      : modules_(std::move(modules)) {}

  /// Tensors that maps name must be 16-byte aligned. Throws CompileError when the driver refuses an image,
  /// CudaError when it refuses a map, UnsupportedError when a library has no such algorithm or engine. The
  /// result is valid as long as this.
  [[nodiscard]] Launch make(const NotedLaunch& noted, const Regions& regions);
  /// Loads what the launch needs, which make else does. Throws as make for an image.
  void load(const NotedLaunch& noted);
  /// Makes a launch that was made of `noted` name other addresses: the same as to make it anew, and faster. Throws as
  /// make for a map.
  void move(Launch& launch, const NotedLaunch& noted, const Regions& regions);

 private:
  /// A product of the library, with the workspace of its algorithm.
  struct Product {
    Product(const LibraryMatmulProblem& problem, std::size_t algorithm)
        : matmul(problem), workspace(matmul.workspace_bytes(algorithm)) {}
    CublasLtMatmul matmul;
    DeviceMemory workspace;
  };

  /// The same of a convolution.
  struct Convolution {
    Convolution(const LibraryConvProblem& problem, std::size_t engine)
        : conv(problem), workspace(conv.workspace_bytes(engine)) {}
    CudnnConv conv;
    DeviceMemory workspace;
  };
  using AddressOf = std::function<DevicePointer(int)>;  ///< of a kernel's argument; 0 for -1

  [[nodiscard]] Launch make_library(const NotedLaunch& noted, const Regions& regions);
  [[nodiscard]] std::function<void(StreamHandle)> bind(const std::shared_ptr<const LibraryCall>& call,
                                                       const LibraryMatmul& matmul, const AddressOf& address);
  [[nodiscard]] std::function<void(StreamHandle)> bind(const std::shared_ptr<const LibraryCall>& call,
                                                       const LibraryConv& conv, const AddressOf& address);
  std::shared_ptr<Modules> modules_;
  std::map<std::shared_ptr<const LibraryCall>, Product> products_;
  std::map<std::shared_ptr<const LibraryCall>, Convolution> convolutions_;
};

}  // namespace sylvite::cuda

#include "runtime/cuda/cudnn.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/dynamic_library.h"
#include "base/error.h"

// The convolution is described as a graph of operations, from which cuDNN's heuristics propose engines. The
// numbers below are those of its binary interface, the same in versions 8 and 9.

namespace sylvite::cuda {
namespace {

using Result = int;  // 0 is success
using Handle = struct HandleTag*;
using Pointer = CudnnDescriptor*;

enum DescriptorKind : int {
  pointwise = 0,
  convolution = 1,
  engine_config = 3,
  heuristics = 4,
  execution_plan = 5,
  convolve_operation = 10,
  pointwise_operation = 13,
  operation_graph = 15,
  variant_pack = 16,
  tensor = 17,
};
enum AttributeType : int {
  of_handle = 0,
  of_data_type = 1,
  of_boolean = 2,
  of_int64 = 3,
  of_float = 4,
  of_pointer = 6,
  of_convolution_mode = 7,
  of_heuristics_mode = 8,
  of_pointwise_mode = 14,
  of_descriptor = 15,
};
enum CudnnAttribute : int {
  pointwise_mode = 0,
  pointwise_precision = 1,
  convolution_precision = 100,
  convolution_mode = 101,
  convolution_dilations = 102,
  convolution_strides = 103,
  convolution_pads_after = 104,
  convolution_pads_before = 105,
  convolution_spatial_dims = 106,
  heuristics_mode = 200,
  heuristics_graph = 201,
  heuristics_results = 202,
  plan_handle = 400,
  plan_engine_config = 401,
  plan_workspace_bytes = 402,
  convolve_alpha = 700,
  convolve_beta = 701,
  convolve_description = 702,
  convolve_filter = 703,
  convolve_images = 704,
  convolve_out = 705,
  pointwise_description = 750,
  pointwise_first = 751,
  pointwise_second = 752,
  pointwise_out = 753,
  graph_handle = 800,
  graph_operations = 801,
  tensor_alignment = 900,
  tensor_type = 901,
  tensor_dims = 902,
  tensor_strides = 903,
  tensor_number = 906,
  tensor_is_virtual = 907,
  pack_numbers = 1000,
  pack_pointers = 1001,
  pack_workspace = 1003,
};
constexpr int cross_correlation = 1;
constexpr int add = 0, relu = 100;  // cudnnPointwiseMode_t
constexpr int by_rules = 3;         // cudnnBackendHeurMode_t A
constexpr int data_f32 = 0;         // cudnnDataType_t

constexpr std::size_t most_engines = 16;
constexpr std::int64_t most_workspace_bytes = 256 << 20;

/// The functions in use; their types repeat the library's binary interface.
struct Cudnn {
  DynamicLibrary library{"cuDNN", {"libcudnn.so.9", "libcudnn.so.8", "libcudnn.so"}};
  std::size_t (*version)() = library.function("cudnnGetVersion");
  const char* (*error_text)(Result) = library.function("cudnnGetErrorString");
  StatusFunction<Handle*> create = library.function("cudnnCreate");
  StatusFunction<Handle, StreamHandle> set_stream = library.function("cudnnSetStream");
  StatusFunction<int, Pointer*> descriptor_create = library.function("cudnnBackendCreateDescriptor");
  StatusFunction<Pointer> descriptor_destroy = library.function("cudnnBackendDestroyDescriptor");
  StatusFunction<Pointer, int, int, std::int64_t, const void*> set =
      library.function("cudnnBackendSetAttribute");
  StatusFunction<Pointer, int, int, std::int64_t, std::int64_t*, void*> get =
      library.function("cudnnBackendGetAttribute");
  StatusFunction<Pointer> finalize = library.function("cudnnBackendFinalize");
  StatusFunction<Handle, Pointer, Pointer> execute = library.function("cudnnBackendExecute");
};

const Cudnn& cudnn_library() {
  static const Cudnn instance;
  return instance;
}

void expect_cudnn(const char* call, Result result) {
  if (result != 0) throw InternalError("{} failed: {}", call, cudnn_library().error_text(result));
}

/// One for the process. REQUIRES handle_mutex held around calls that take it.
Handle cudnn_handle() {
  static const Handle instance = [] {
    Handle made = nullptr;
    expect_cudnn("cudnnCreate", cudnn_library().create(&made));
    return made;
  }();
  return instance;
}
std::mutex& handle_mutex() {
  static std::mutex mutex;
  return mutex;
}

/// cudnnDataType_t.
int cudnn_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return data_f32;
    case DType::f16:
      return 2;
    case DType::bf16:
      return 9;
    default:
      throw UnsupportedError("cuDNN has no {} here", dtype_name(dtype));
  }
}

Pointer create(DescriptorKind kind) {
  Pointer made = nullptr;
  expect_cudnn("cudnnBackendCreateDescriptor", cudnn_library().descriptor_create(kind, &made));
  return made;
}

template <typename T>
void set_all(Pointer descriptor, CudnnAttribute attribute, AttributeType type, const std::vector<T>& values) {
  const Result result =
      cudnn_library().set(descriptor, attribute, type, static_cast<std::int64_t>(values.size()),
                          static_cast<const void*>(values.data()));
  if (result != 0) {
    throw InternalError("cuDNN does not take attribute {}: {}", static_cast<int>(attribute),
                        cudnn_library().error_text(result));
  }
}
template <typename T>
void set(Pointer descriptor, CudnnAttribute attribute, AttributeType type, const T& value) {
  set_all(descriptor, attribute, type, std::vector<T>{value});
}

/// Numbers of the tensors in a graph; those between operations come after them.
enum TensorNumber : std::int64_t { images = 1, filter, bias, residual, out, between };

}  // namespace

void CudnnConv::Destroy::operator()(Pointer descriptor) const noexcept {
  (void)cudnn_library().descriptor_destroy(descriptor);
}

/// Describes a problem, part by part.
class CudnnGraph {
 public:
  CudnnGraph(const LibraryConvProblem& problem, std::vector<CudnnConv::Descriptor>& parts)
      : problem_(problem), parts_(parts) {}

  /// The graph of operations. cuDNN's fused kernels want the residual before the bias.
  Pointer describe() {
    Pointer sum = convolve();
    if (problem_.residual_argument >= 0)
      sum = combine(add, sum, add_tensor(residual, problem_.out, problem_.element));
    if (problem_.bias_argument >= 0)
      sum = combine(add, sum, add_tensor(bias, {1, problem_.out[1], 1, 1}, problem_.bias_type));
    if (problem_.relu) combine(relu, sum, nullptr);
    Pointer graph = part(operation_graph);
    set(graph, graph_handle, of_handle, cudnn_handle());
    set_all(graph, graph_operations, of_descriptor, operations_);
    expect_finalized(graph, "graph");
    return graph;
  }

 private:
  Pointer part(DescriptorKind kind) { return parts_.emplace_back(create(kind)).get(); }

  static void expect_finalized(Pointer descriptor, const char* what) {
    if (const Result result = cudnn_library().finalize(descriptor); result != 0)
      throw UnsupportedError("cuDNN refuses this convolution's {}: {}", what,
                             cudnn_library().error_text(result));
  }

  /// Dims in the graph's order, channels innermost.
  Pointer add_tensor(std::int64_t number, const Dims& dims, DType dtype, bool is_virtual = false) {
    constexpr std::int64_t alignment = 16;
    const std::int64_t line = dims[3] * dims[1];
    Pointer described = part(tensor);
    set(described, tensor_type, of_data_type, cudnn_type(dtype));
    set(described, tensor_number, of_int64, number);
    set_all(described, tensor_dims, of_int64, dims);
    set_all(described, tensor_strides, of_int64, Dims{dims[2] * line, 1, line, dims[1]});
    set(described, tensor_alignment, of_int64, alignment);
    set(described, tensor_is_virtual, of_boolean, static_cast<char>(is_virtual));
    expect_finalized(described, "tensors");
    return described;
  }

  /// What the next operation writes: the result, when it is the last.
  Pointer next_tensor() {
    const auto last = std::size_t{1} + (problem_.residual_argument >= 0) + (problem_.bias_argument >= 0) +
                      static_cast<std::size_t>(problem_.relu);
    const bool is_last = operations_.size() + 1 == last;
    const auto number = static_cast<std::int64_t>(operations_.size()) + between;
    return is_last ? add_tensor(out, problem_.out, problem_.element)
                   : add_tensor(number, problem_.out, DType::f32, true);
  }

  Pointer convolve() {
    Pointer description = part(convolution);
    set(description, convolution_precision, of_data_type, data_f32);
    set(description, convolution_mode, of_convolution_mode, cross_correlation);
    set(description, convolution_spatial_dims, of_int64, std::int64_t{2});
    set_all(description, convolution_pads_before, of_int64, problem_.pads_before);
    set_all(description, convolution_pads_after, of_int64, problem_.pads_after);
    set_all(description, convolution_strides, of_int64, problem_.strides);
    set_all(description, convolution_dilations, of_int64, problem_.dilations);
    expect_finalized(description, "windows");
    Pointer x = add_tensor(images, problem_.images, problem_.element);
    Pointer w = add_tensor(filter, problem_.filter, problem_.element);
    Pointer y = next_tensor();
    Pointer operation = part(convolve_operation);
    set(operation, convolve_images, of_descriptor, x);
    set(operation, convolve_filter, of_descriptor, w);
    set(operation, convolve_out, of_descriptor, y);
    set(operation, convolve_description, of_descriptor, description);
    set(operation, convolve_alpha, of_float, 1.F);
    set(operation, convolve_beta, of_float, 0.F);
    expect_finalized(operation, "products");
    operations_.push_back(operation);
    return y;
  }

  Pointer combine(int mode, Pointer first, Pointer second) {
    Pointer description = part(pointwise);
    set(description, pointwise_mode, of_pointwise_mode, mode);
    set(description, pointwise_precision, of_data_type, data_f32);
    expect_finalized(description, "epilogue");
    Pointer y = next_tensor();
    Pointer operation = part(pointwise_operation);
    set(operation, pointwise_description, of_descriptor, description);
    set(operation, pointwise_first, of_descriptor, first);
    if (second != nullptr) set(operation, pointwise_second, of_descriptor, second);
    set(operation, pointwise_out, of_descriptor, y);
    expect_finalized(operation, "epilogue");
    operations_.push_back(operation);
    return y;
  }

  const LibraryConvProblem& problem_;
  std::vector<CudnnConv::Descriptor>& parts_;
  std::vector<Pointer> operations_;
};

std::int64_t cudnn_version() {
  return static_cast<std::int64_t>(cudnn_library().version());
}

CudnnConv::CudnnConv(const LibraryConvProblem& problem)
    : has_bias_(problem.bias_argument >= 0), has_residual_(problem.residual_argument >= 0) {
  const std::lock_guard lock(handle_mutex());
  Pointer graph = CudnnGraph(problem, parts_).describe();
  find_engines(graph);
  if (engines_.empty()) throw UnsupportedError("{}", "cuDNN has no engine for this convolution");
  plans_.resize(engines_.size());
}

void CudnnConv::find_engines(Pointer graph) {
  const Descriptor asked(create(heuristics));
  set(asked.get(), heuristics_graph, of_descriptor, graph);
  set(asked.get(), heuristics_mode, of_heuristics_mode, by_rules);
  if (cudnn_library().finalize(asked.get()) != 0) return;
  std::vector<Pointer> pointers;
  pointers.reserve(most_engines);
  for (std::size_t i = 0; i < most_engines; ++i)
    pointers.push_back(engines_.emplace_back(create(engine_config)).get());
  std::int64_t found = 0;
  const Result result = cudnn_library().get(asked.get(), heuristics_results, of_descriptor,
                                            static_cast<std::int64_t>(pointers.size()), &found,
                                            static_cast<void*>(pointers.data()));
  engines_.resize(result == 0 ? std::min(most_engines, static_cast<std::size_t>(found)) : 0);
}

Pointer CudnnConv::plan_of(std::size_t engine) {
  if (engine >= engines_.size()) {
    throw UnsupportedError("cuDNN proposes {} engines for this convolution, number {} is none of them",
                           engines_.size(), engine);
  }
  if (plans_[engine]) return plans_[engine].get();
  const std::lock_guard lock(handle_mutex());
  Descriptor plan(create(execution_plan));
  set(plan.get(), plan_handle, of_handle, cudnn_handle());
  set(plan.get(), plan_engine_config, of_descriptor, engines_[engine].get());
  if (const Result result = cudnn_library().finalize(plan.get()); result != 0) {
    throw UnsupportedError("cuDNN's engine {} cannot take this convolution: {}", engine,
                           cudnn_library().error_text(result));
  }
  plans_[engine] = std::move(plan);
  return plans_[engine].get();
}

std::size_t CudnnConv::workspace_bytes(std::size_t engine) {
  std::int64_t bytes = 0, count = 0;
  expect_cudnn("cudnnBackendGetAttribute",
               cudnn_library().get(plan_of(engine), plan_workspace_bytes, of_int64, 1, &count, &bytes));
  if (bytes > most_workspace_bytes) {
    throw UnsupportedError("cuDNN's engine {} needs {} bytes of workspace, more than {}", engine, bytes,
                           most_workspace_bytes);
  }
  return static_cast<std::size_t>(bytes);
}

std::function<void(StreamHandle)> CudnnConv::bind(std::size_t engine, const Arguments& arguments) {
  std::vector<std::int64_t> numbers = {images, filter, out};
  std::vector<DevicePointer> addresses = {arguments.images, arguments.filter, arguments.out};
  const auto name = [&](std::int64_t number, DevicePointer address) {
    numbers.push_back(number);
    addresses.push_back(address);
  };
  if (has_bias_) name(bias, arguments.bias);
  if (has_residual_) name(residual, arguments.residual);
  Pointer plan = plan_of(engine);
  const std::shared_ptr<CudnnDescriptor> pack(create(variant_pack), Destroy{});
  set_all(pack.get(), pack_numbers, of_int64, numbers);
  set_all(pack.get(), pack_pointers, of_pointer, addresses);
  set(pack.get(), pack_workspace, of_pointer, arguments.workspace);
  expect_cudnn("cudnnBackendFinalize", cudnn_library().finalize(pack.get()));
  return [plan, pack](StreamHandle stream) {
    const std::lock_guard lock(handle_mutex());
    expect_cudnn("cudnnSetStream", cudnn_library().set_stream(cudnn_handle(), stream));
    expect_cudnn("cudnnBackendExecute", cudnn_library().execute(cudnn_handle(), plan, pack.get()));
  };
}

}  // namespace sylvite::cuda

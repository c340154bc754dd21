#include "runtime/cuda/cublaslt.h"

#include "base/dynamic_library.h"
#include "base/error.h"

// cuBLASLt thinks in columns: our row-major out[m, n] is its n x m matrix, the product of b's and a's.

namespace sylvite::cuda {
namespace {

using Result = int;  // 0 is success
using Handle = struct HandleTag*;
using Preference = struct PreferenceTag*;

constexpr int compute_f32 = 68;   // CUBLAS_COMPUTE_32F
constexpr int compute_tf32 = 77;  // CUBLAS_COMPUTE_32F_FAST_TF32
constexpr int requested_algorithms = 64;

enum DescriptorAttribute : int {
  transpose_first = 3,
  transpose_second = 4,
  epilogue = 7,
  bias_pointer = 8,
  bias_type = 26
};
enum LayoutAttribute : int { batch_count = 5, batch_offset = 6 };
enum PreferenceAttribute : int { most_workspace = 1 };
enum EpilogueFlag : int { plain = 1, with_relu = 2, with_bias = 4, with_gelu = 32 };

/// The functions in use; their types repeat the library's binary interface.
struct CublasLt {
  DynamicLibrary library{"cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}};
  std::size_t (*version)() = library.function("cublasLtGetVersion");
  StatusFunction<Handle*> create = library.function("cublasLtCreate");
  StatusFunction<void**, int, int> descriptor_create = library.function("cublasLtMatmulDescCreate");
  StatusFunction<void*, int, const void*, std::size_t> descriptor_set =
      library.function("cublasLtMatmulDescSetAttribute");
  StatusFunction<void*> descriptor_destroy = library.function("cublasLtMatmulDescDestroy");
  StatusFunction<void**, int, std::uint64_t, std::uint64_t, std::int64_t> layout_create =
      library.function("cublasLtMatrixLayoutCreate");
  StatusFunction<void*, int, const void*, std::size_t> layout_set =
      library.function("cublasLtMatrixLayoutSetAttribute");
  StatusFunction<void*> layout_destroy = library.function("cublasLtMatrixLayoutDestroy");
  StatusFunction<Preference*> preference_create = library.function("cublasLtMatmulPreferenceCreate");
  StatusFunction<Preference, int, const void*, std::size_t> preference_set =
      library.function("cublasLtMatmulPreferenceSetAttribute");
  StatusFunction<Preference> preference_destroy = library.function("cublasLtMatmulPreferenceDestroy");
  StatusFunction<Handle, void*, void*, void*, void*, void*, Preference, int, void*, int*> heuristics =
      library.function("cublasLtMatmulAlgoGetHeuristic");
  StatusFunction<Handle, void*, const void*, const void*, void*, const void*, void*, const void*, const void*,
                 void*, void*, void*, const void*, void*, std::size_t, StreamHandle>
      matmul = library.function("cublasLtMatmul");
};

const CublasLt& blas_library() {
  static const CublasLt instance;
  return instance;
}

void expect_blas(const char* call, Result result) {
  if (result != 0) throw InternalError("{} failed with cuBLAS status {}", call, result);
}

Handle blas_handle() {
  static const Handle instance = [] {
    Handle made = nullptr;
    expect_blas("cublasLtCreate", blas_library().create(&made));
    return made;
  }();
  return instance;
}

/// cudaDataType.
int blas_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return 0;
    case DType::f16:
      return 2;
    case DType::bf16:
      return 14;
    default:
      throw UnsupportedError("cuBLASLt has no {} here", dtype_name(dtype));
  }
}

template <typename T>
void set_descriptor(void* descriptor, DescriptorAttribute attribute, const T& value) {
  expect_blas(
      "cublasLtMatmulDescSetAttribute",
      blas_library().descriptor_set(descriptor, attribute, static_cast<const void*>(&value), sizeof value));
}

/// A matrix of `fast` elements that lie together, `slow` times.
void* make_layout(DType dtype, std::int64_t fast, std::int64_t slow, std::int64_t pitch, std::int64_t batches,
                  std::int64_t batch_pitch) {
  void* layout = nullptr;
  expect_blas("cublasLtMatrixLayoutCreate",
              blas_library().layout_create(&layout, blas_type(dtype), static_cast<std::uint64_t>(fast),
                                           static_cast<std::uint64_t>(slow), pitch));
  const int count = static_cast<int>(batches);
  expect_blas("cublasLtMatrixLayoutSetAttribute",
              blas_library().layout_set(layout, batch_count, &count, sizeof count));
  expect_blas("cublasLtMatrixLayoutSetAttribute",
              blas_library().layout_set(layout, batch_offset, &batch_pitch, sizeof batch_pitch));
  return layout;
}

void* operand_layout(const LibraryMatmulProblem& problem, const MatmulOperand& operand, std::int64_t rows) {
  return make_layout(problem.element, operand.depth_fast ? problem.k : rows,
                     operand.depth_fast ? rows : problem.k, operand.pitch, problem.batch,
                     operand.batch_pitch);
}

int epilogue_of(const SimpleEpilogue& simple) {
  using Activation = SimpleEpilogue::Activation;
  const int activation = simple.activation == Activation::relu        ? with_relu
                         : simple.activation == Activation::gelu_tanh ? with_gelu
                                                                      : 0;
  const int flags = activation | (simple.bias >= 0 ? with_bias : 0);
  return flags == 0 ? plain : flags;
}

void* pointer(DevicePointer address) {
  return reinterpret_cast<void*>(address);
}

}  // namespace

std::int64_t cublaslt_version() {
  return static_cast<std::int64_t>(blas_library().version());
}

CublasLtMatmul::CublasLtMatmul(const LibraryMatmulProblem& problem, std::size_t workspace_limit) {
  try {
    describe(problem);
    find_algorithms(workspace_limit);
  } catch (...) {
    release();
    throw;
  }
}

CublasLtMatmul::~CublasLtMatmul() {
  release();
}

void CublasLtMatmul::describe(const LibraryMatmulProblem& problem) {
  const bool tf32 = problem.element == DType::f32;
  void* operation = nullptr;
  expect_blas(
      "cublasLtMatmulDescCreate",
      blas_library().descriptor_create(&operation, tf32 ? compute_tf32 : compute_f32, blas_type(DType::f32)));
  operation_ = static_cast<Descriptor>(operation);
  set_descriptor(operation_, transpose_first, static_cast<int>(problem.b.depth_fast));
  set_descriptor(operation_, transpose_second, static_cast<int>(!problem.a.depth_fast));
  set_descriptor(operation_, epilogue, epilogue_of(problem.epilogue));
  has_bias_ = problem.epilogue.bias >= 0;
  if (has_bias_) set_descriptor(operation_, bias_type, blas_type(problem.epilogue.bias_type));
  b_ = static_cast<MatrixLayout>(operand_layout(problem, problem.b, problem.n));
  a_ = static_cast<MatrixLayout>(operand_layout(problem, problem.a, problem.m));
  out_ = static_cast<MatrixLayout>(
      make_layout(problem.out, problem.n, problem.m, problem.n, problem.batch, problem.m * problem.n));
}

void CublasLtMatmul::find_algorithms(std::size_t workspace_limit) {
  static_assert(sizeof(Algorithm) == 96, "cublasLtMatmulHeuristicResult_t");
  Preference preference = nullptr;
  expect_blas("cublasLtMatmulPreferenceCreate", blas_library().preference_create(&preference));
  expect_blas(
      "cublasLtMatmulPreferenceSetAttribute",
      blas_library().preference_set(preference, most_workspace, &workspace_limit, sizeof workspace_limit));
  algorithms_.resize(requested_algorithms);
  int found = 0;
  const Result result = blas_library().heuristics(blas_handle(), operation_, b_, a_, out_, out_, preference,
                                                  requested_algorithms, algorithms_.data(), &found);
  (void)blas_library().preference_destroy(preference);
  algorithms_.resize(result == 0 ? static_cast<std::size_t>(found) : 0);
  std::erase_if(algorithms_, [](const Algorithm& algorithm) { return algorithm.state != 0; });
  if (algorithms_.empty())
    throw UnsupportedError("cuBLASLt has no algorithm for this product (status {})", result);
}

std::size_t CublasLtMatmul::workspace_bytes(std::size_t algorithm) const {
  if (algorithm >= algorithms_.size()) {
    throw UnsupportedError("cuBLASLt proposes {} algorithms for this product, number {} is none of them",
                           algorithms_.size(), algorithm);
  }
  return algorithms_[algorithm].workspace_bytes;
}

void CublasLtMatmul::run(std::size_t algorithm, const Arguments& arguments, StreamHandle stream) const {
  const float one = 1;
  const float zero = 0;
  const Algorithm& chosen = algorithms_.at(algorithm);
  if (has_bias_) set_descriptor(operation_, bias_pointer, pointer(arguments.bias));
  expect_blas("cublasLtMatmul",
              blas_library().matmul(blas_handle(), operation_, &one, pointer(arguments.b), b_,
                                    pointer(arguments.a), a_, &zero, pointer(arguments.out), out_,
                                    pointer(arguments.out), out_, chosen.opaque.data(),
                                    pointer(arguments.workspace), chosen.workspace_bytes, stream));
}

void CublasLtMatmul::release() noexcept {
  if (operation_ != nullptr) (void)blas_library().descriptor_destroy(operation_);
  for (MatrixLayout layout : {b_, a_, out_})
    if (layout != nullptr) (void)blas_library().layout_destroy(layout);
}

}  // namespace sylvite::cuda

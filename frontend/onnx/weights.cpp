#include "frontend/onnx/weights.h"

#include <onnx-ml.pb.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace sylvite {
namespace {

std::uint64_t fnv1a64(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

/// Output number i of splitmix64 started at `state`.
std::uint64_t splitmix64(std::uint64_t state, std::uint64_t i) {
  std::uint64_t z = state + (i + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

bool has_flag(const onnx::NodeProto& node, std::string_view name) {
  return std::any_of(node.attribute().begin(), node.attribute().end(),
                     [&](const auto& attribute) { return attribute.name() == name && attribute.i() != 0; });
}

double fan_in_for(const onnx::NodeProto& node, const Dims& dims) {
  const auto last = static_cast<double>(dims.empty() ? 1 : dims.back());
  const std::string& op = node.op_type();
  if (op.starts_with("Conv")) {
    double product = 0.5;
    for (std::size_t i = 1; i < dims.size(); ++i) product *= static_cast<double>(dims[i]);
    return product;
  }
  if (op == "MatMul") return dims.size() > 1 ? static_cast<double>(dims[dims.size() - 2]) : last;
  if (op == "Gemm" && !dims.empty()) return has_flag(node, "transB") ? last : static_cast<double>(dims[0]);
  if (op == "Gather") return 1;
  if (op == "Transpose" && dims.size() == 2) return last;
  return 0;
}

}  // namespace

Tensor random_floats(DType dtype, const Dims& dims, std::string_view name, std::uint64_t seed,
                     double factor) {
  if (!is_float(dtype)) throw UnsupportedError("'{}': no random values for {}", name, dtype_name(dtype));
  Tensor tensor(dtype, dims);
  const std::uint64_t state = seed ^ fnv1a64(name);
  const auto scale = static_cast<float>(factor);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const std::uint64_t bits = splitmix64(state, static_cast<std::uint64_t>(i)) >> 40;
    const float value = (static_cast<float>(bits) * 0x1p-23F - 1.0F) * scale;
    if (dtype == DType::f32)
      static_cast<float*>(tensor.mutable_data())[i] = value;
    else
      tensor.set_double(i, static_cast<double>(value));
  }
  return tensor;
}

Tensor random_integers(DType dtype, const Dims& dims, std::string_view name, std::uint64_t seed,
                       std::int64_t limit) {
  if (limit < 1) throw UsageError("'{}': random integers need a limit of at least 1, got {}", name, limit);
  Tensor tensor(dtype, dims);
  const std::uint64_t state = seed ^ fnv1a64(name);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const std::uint64_t bits = splitmix64(state, static_cast<std::uint64_t>(i)) >> 32;
    tensor.set_int64(i, static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(limit)));
  }
  return tensor;
}

double weight_fan_in(const onnx::GraphProto& graph, const onnx::TensorProto& weight) {
  const Dims dims(weight.dims().begin(), weight.dims().end());
  double fan_in = 0;
  for (const onnx::NodeProto& node : graph.node()) {
    if (std::find(node.input().begin(), node.input().end(), weight.name()) != node.input().end()) {
      fan_in = fan_in_for(node, dims);
      if (fan_in > 0) break;
    }
  }
  if (fan_in <= 0) fan_in = static_cast<double>(dims.empty() ? 1 : dims.back());
  return std::max(fan_in, 0.5);
}

}  // namespace sylvite

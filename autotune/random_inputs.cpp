#include "autotune/random_inputs.h"

#include <algorithm>

#include "frontend/ops/op_table.h"

namespace sylvite {

namespace {

constexpr std::int64_t plain_integer_bound = 8;  // where integers are not indices

/// A small, fast and fixed generator (splitmix64): inputs must be the same in every process.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  float signed_unit() { return static_cast<float>(static_cast<std::int64_t>(bits()) >> 40) * 0x1p-23F; }

 private:
  std::uint64_t state_;
};

/// The extents that the indices of a gather or scatter node count along.
Dims indexed_extents(const Graph& body, const Node& node) {
  Dims dims = body.type(node.inputs.at(0)).dims();
  if (node.attributes.has("axis")) {
    std::int64_t axis = node.attributes.integer("axis");
    return {
        dims.at(static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(dims.size()) : axis))};
  }
  return dims;
}

/// Integers below this are valid indices into whatever the kernel indexes.
std::int64_t integer_bound(const Kernel& kernel) {
  std::int64_t bound = 0;
  for (const Node& node : kernel.body.nodes()) {
    if (has_trait(node.op, OpTrait::gather) || has_trait(node.op, OpTrait::scatter))
      for (std::int64_t extent : indexed_extents(kernel.body, node))
        bound = bound == 0 ? extent : std::min(bound, extent);
  }
  return bound == 0 ? plain_integer_bound : bound;
}

/// Steps of quantised weights use all bits: products of small numbers would hide sums that overflow.
Tensor random_steps(const Dims& dims, Random& random) {
  Tensor tensor(DType::i8, dims);
  for (auto& step : tensor.mutable_view<std::int8_t>())
    step = static_cast<std::int8_t>(static_cast<std::int64_t>(random.bits() % 255) - 127);
  return tensor;
}

Tensor random_tensor(DType dtype, const Dims& dims, std::int64_t bound, Random& random) {
  Tensor tensor(dtype, dims);
  if (dtype == DType::f32) {
    for (float& value : tensor.mutable_view<float>()) value = random.signed_unit();
    return tensor;
  }
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    if (is_float(dtype))
      tensor.set_double(i, random.signed_unit());
    else if (dtype == DType::boolean)
      tensor.set_int64(i, static_cast<std::int64_t>(random.bits() & 1));
    else
      tensor.set_int64(i, static_cast<std::int64_t>(random.bits() % static_cast<std::uint64_t>(bound)));
  return tensor;
}

}  // namespace

std::vector<Tensor> random_inputs(const Kernel& kernel) {
  Random random(20260101);
  std::int64_t bound = integer_bound(kernel);
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < kernel.body.inputs.size(); ++i) {
    const TensorType& type = kernel.body.type(kernel.body.inputs[i]);
    Dims dims = kernel.input_is_weight.at(i) ? type.dims() : type.storage_dims();
    const bool is_quantized = type.dtype == DType::i8 && kernel.kind == KernelClass::matmul &&
                              kernel.body.node(kernel.anchor).op == Op::quantized_matmul;
    inputs.push_back(is_quantized ? random_steps(dims, random)
                                  : random_tensor(type.dtype, dims, bound, random));
  }
  return inputs;
}

}  // namespace sylvite

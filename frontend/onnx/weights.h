#pragma once
// Seeded random tensors for models whose weights were stripped. The values are a persistent format: the same
// name, seed and scale give the same bits in every build, and tests/data/make_expected.py computes them in
// NumPy.

#include <cstdint>
#include <string_view>

#include "sylvite/tensor.h"

namespace onnx {
class GraphProto;
class TensorProto;
}  // namespace onnx

namespace sylvite {

/// Element i is uniform in [-1, 1), a multiple of 2^-23: the top 24 bits of splitmix64's output number i from
/// the start state seed ^ fnv1a64(name); times float(factor), rounded once. Throws UnsupportedError unless
/// dtype is a float.
[[nodiscard]] Tensor random_floats(DType dtype, const Dims& dims, std::string_view name, std::uint64_t seed,
                                   double factor);

/// Element i is uniform in [0, limit): (top 32 bits of the same output) modulo limit.
[[nodiscard]] Tensor random_integers(DType dtype, const Dims& dims, std::string_view name, std::uint64_t seed,
                                     std::int64_t limit);

/// The number of products summed into one output by the first reader of `weight`; halved for convolutions,
/// because a rectifier halves the variance. random_floats with factor sqrt(3 / fan_in) keeps activations near
/// unit variance.
[[nodiscard]] double weight_fan_in(const onnx::GraphProto& graph, const onnx::TensorProto& weight);

}  // namespace sylvite
